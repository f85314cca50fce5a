"""What the page of results says before its first number: how it is repeated, the path, the losses, who takes part."""

HEAD = """\
# Results: the paper in numbers

Freemon 2013 prints two tables of how long an image takes to cross an ocean. `make paper` measures them again in the
[lab](lab.md), beside other congestion controls on the same path, and writes this page from what it has measured: no
number here was typed. A dash is a cell that was not measured.

## How to repeat it

```sh
make paper                                   # all; Ctrl-C stops it, and the same command goes on where it was
make paper-quick                             # a part of it, in less than a quarter of an hour
make paper ARGS=--list                       # the names of all cells
make paper ARGS="--only 'table-reused-packet-180ms-0.01$' --again"   # a single one
make paper ARGS="--only 'table-reused-packet-180ms-0.01$' --again --published --publish"   # and this page with it
```

Each cell is a JSON file in `out/paper/cells`: what was asked for, each transfer, how idle the virtual CPU was, wall
time, versions and commit. A cell in which the CPU was full is no result. `docs/results/cells.jsonl` has the cells that
this page is made of, `docs/results/summary.json` what they come to.

## The path

    sender -- near -- far -- receiver

`near` has the port of the circuit: its rate, and a buffer of rate x round trip. `far` has the delay, and the rate once
more without a bucket of tokens, so that nothing is earlier than a line would bring it. Rates are counted on the wire.
Time runs from the first write until the sender knows that the last byte has arrived. The **limit** is the bytes on the
wire by the rate, and one round trip; no transfer may be quicker. Where the sender connects it is nearly a round trip
more: the window in a SYN-ACK is not scaled, so that all but the first 64 KiB wait for the first confirmation. The
handshake itself is not counted, as in the paper, whose new connections take one round trip more than its reused ones.

Losses hit both directions, by random numbers with a seed for each run: all contestants in a cell have the same. There
are two models:

- **super-packets**: netem loses what the kernel hands it, up to 44 segments at once. So did the paper's router.
- **packets**: each segment is lost by itself. A program at the receiver's interface decides on every segment; a
  super-packet of which one is to be lost is cut there, the others pass whole, and none overtakes another. That costs
  hardly more than no loss at all, where single packets on the whole path take several times as long; and what is sent
  again is what was lost, but for a few segments.

A segment that is lost in the last round trip arrives one round trip later, whatever the sender does; one that is lost
twice, two. With single packets and 0.1% or more nearly every transfer has such a segment. So there is an **ideal**: a
sender that knows of each loss a round trip after it sent, sends that again at once, and nothing else twice. Its times
are calculated, not measured (`ideal_s` in `papers/freemon/limits.py`). What is sent again last, and lost again, is
found by nothing but the timeout, RTT + 20 ms after the last confirmation: that is the tail of the rows that lose most.
To send repetitions more than once could shorten that tail, but would not bring the median of a row with 1% within one
round trip: what is lost needs the line a second time, and the last loss its round trip.
"""
