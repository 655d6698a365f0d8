"""Language models that tell texts: what a host does around a model of one token."""
