"""What was asked and how its context arrived: queries, documents, arrivals and traces of them."""
