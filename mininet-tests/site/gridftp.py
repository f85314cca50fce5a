"""How GridFTP's server is told to serve whoever comes, as one does within a network of one's own."""

ANYBODY = "-aa -anonymous-user root -allow-root -disable-usage-stats"
