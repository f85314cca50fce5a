"""What belongs to Headway and is not the product: its packages."""
