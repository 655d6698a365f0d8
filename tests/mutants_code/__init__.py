"""Faults put into the production code, one at a time: do the tests notice?"""
