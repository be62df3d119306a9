package queue

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/sweep/cells"
)

// BenchmarkTinyCells is what the queue itself takes for a cell that takes nothing: asked
// for, stored, taken by one of two workers over TCP, its result stored, acknowledged and
// brought back, all on this machine.
func BenchmarkTinyCells(b *testing.B) {
	q, err := Embed(b.Context(), "127.0.0.1:0", b.TempDir(), Options{Code: code, Lease: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	ctx, cancel := context.WithCancel(b.Context())
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			_ = Work(ctx, Options{URL: "nats://" + q.Address, TokenFile: q.TokenFile, Code: code}, Worker{Slots: 1, Makers: making(func(_ context.Context, _ cells.Bench, n int) (any, error) { return n, nil })})
		})
	}
	defer workers.Wait()
	defer cancel()
	if _, err := q.Make(ctx, number(-1)); err != nil { // they are there
		b.Fatal(err)
	}
	b.ResetTimer()
	if _, errs := all(ctx, q, b.N); errs[0] != nil {
		b.Fatal(errs[0])
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cells/s")
}
