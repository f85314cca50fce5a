"""Wertz et al., Comparing Large File Transfer Methodologies on the 10-Gigabit ASC WAN: its model, in our fluid."""
