package server

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// silent traces nothing.
func silent() trace.Tracer { return noop.NewTracerProvider().Tracer("coterie") }

// newTracer sends traces to a collector, if one is named. end sends what is left.
func newTracer(ctx context.Context, url string) (t trace.Tracer, end func(), err error) {
	if url == "" {
		return silent(), func() {}, nil
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
