// Package federation is server and participant over the network: the same fl, another shell.
package federation
