"""What Grafana needs to show a site."""
