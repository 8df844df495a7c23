#!/bin/sh
tr -d '[:space:]' < "$1" | wc -m
