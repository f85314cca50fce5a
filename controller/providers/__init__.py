"""Who sells the circuit: nobody any more, for a leased line, or OSCARS."""
