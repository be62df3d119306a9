// Package wire is the protocol between server and participants, generated from federation.proto.
package wire

//go:generate go tool -modfile=../../tools.mod buf generate
