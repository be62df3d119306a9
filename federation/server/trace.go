package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/coterie-fl/coterie/federation/wire"
)

// silent traces nothing.
func silent() trace.Tracer { return noop.NewTracerProvider().Tracer("coterie") }

// roundSpans are of the round that is open and of the one before it: calls are their
// children, also those that come late.
type roundSpans struct {
	kept   bool // there are traces
	mu     sync.Mutex
	number int
	now    trace.SpanContext
	before trace.SpanContext // of number-1; not valid if there was none
}

func (s *roundSpans) begins(round int, span trace.SpanContext) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = trace.SpanContext{}
	if s.now.IsValid() && s.number == round-1 {
		s.before = s.now
	}
	s.number, s.now = round, span
}

// of is a round's span, or one that is not valid.
func (s *roundSpans) of(round int64) trace.SpanContext {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch round {
	case int64(s.number):
		return s.now
	case int64(s.number) - 1:
		return s.before
	}
	return trace.SpanContext{}
}

// ofRound are the calls that are spans of their rounds. Others have spans of their own.
var ofRound = map[string]bool{
	wire.FederationNextProcedure: true, wire.FederationBroadcastProcedure: true, wire.FederationOfferProcedure: true,
	wire.FederationUploadProcedure: true, wire.FederationDeclineProcedure: true,
}

// outside begins the span of a call that belongs to no round.
func (c *Coordinator) outside(ctx context.Context, procedure string) (context.Context, func()) {
	if !c.spans.kept || ofRound[procedure] {
		return ctx, func() {}
	}
	ctx, span := c.tracer.Start(ctx, procedure[1:], trace.WithSpanKind(trace.SpanKindServer))
	return ctx, func() { span.End() }
}

// inRound begins the span of a call, as a child of its round. end takes what the call ends
// with.
func (c *Coordinator) inRound(ctx context.Context, procedure string, round int64, more ...trace.SpanStartOption) (_ context.Context, end func(error)) {
	if !c.spans.kept {
		return ctx, func(error) {}
	}
	if parent := c.spans.of(round); parent.IsValid() {
		ctx = trace.ContextWithSpanContext(ctx, parent)
	}
	ctx, span := c.tracer.Start(ctx, procedure[1:], append(more, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.Int64("coterie.round", round+1)))...)
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// handedOut is the span of a Next that was given work: since it asked, or since the round
// was opened, if it had waited for that.
func (c *Coordinator) handedOut(ctx context.Context, round int, began time.Time) {
	if !c.spans.kept {
		return
	}
	c.gate.RLock()
	if r := c.round; r != nil && r.number == round && r.opened.After(began) {
		began = r.opened
	}
	c.gate.RUnlock()
	_, end := c.inRound(ctx, wire.FederationNextProcedure, int64(round), trace.WithTimestamp(began))
	end(nil)
}

// roundOf is the open round that begins with some bytes.
func (c *Coordinator) roundOf(broadcast []byte) (round int64, ok bool) {
	c.gate.RLock()
	defer c.gate.RUnlock()
	if r := c.round; r != nil && string(r.broadcast.sum[:]) == string(broadcast) {
		return int64(r.number), true
	}
	return 0, false
}

// newTracer sends traces to a collector, if one is named; otherwise it is nil. end sends
// what is left.
func newTracer(ctx context.Context, url string) (t trace.Tracer, end func(), err error) {
	if url == "" {
		return nil, func() {}, nil
	}
	to, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(url))
	if err != nil {
		return nil, nil, fmt.Errorf("traces: %w", err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(to),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "coterie"))))
	return p.Tracer("coterie"), func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = p.Shutdown(ctx) // a collector that is gone must not keep the server
	}, nil
}
