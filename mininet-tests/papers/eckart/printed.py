"""What the paper prints. Source: Eckart et al., table 3, section 5.1 and figure 2."""

MEMORY_MB = 750
LINE_MBPS = 1000.0
FIGURE_2_MB = 3000
# File, MB; r(disk), predicted and measured rate, Mbit/s. The row of 400 MB fits into memory: its prediction is
# infinite.
TABLE_3 = (
    (800, 275.12, 4401.92, 959.60),
    (1000, 275.37, 1101.48, 958.63),
    (2000, 281.31, 450.10, 447.22),
    (3000, 280.06, 373.41, 370.20),
    (4000, 270.16, 332.51, 329.81),
    (5000, 278.36, 327.48, 325.58),
)
