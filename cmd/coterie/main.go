// Command coterie trains models together while data stay with their owners, and says what that reveals.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/coterie-fl/coterie/all" // data sets, methods and protections
)

// What a command's context ends with: the signal that asked for the stop.
var (
	errInterrupt  = errors.New("interrupt signal received")
	errTerminated = errors.New("terminated signal received")
)

func main() {
	// The first signal asks for a clean stop; a second one ends the process.
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		cause := errInterrupt
		if <-signals == syscall.SIGTERM {
			cause = errTerminated
		}
		signal.Reset(os.Interrupt, syscall.SIGTERM)
		stop(cause)
	}()
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
