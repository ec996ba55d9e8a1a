"""Contacts, limits and dry friction in the variational formulation."""
