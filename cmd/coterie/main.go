// Command coterie trains models together while data stay with their owners, and says what that reveals.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/coterie-fl/coterie/all" // data sets, methods and protections
)

func main() {
	// The first signal asks for a clean stop; a second one ends the process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
