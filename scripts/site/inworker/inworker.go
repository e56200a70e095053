// Package inworker connects a program with the worker of a browser that runs it
// (static/engine.js).
package inworker
