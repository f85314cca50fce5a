"""What Prometheus needs to know of a site: what to scrape, and what to raise an alarm for."""
