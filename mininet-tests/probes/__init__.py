"""What measures: counters, sockets, arrivals, what switches hold."""
