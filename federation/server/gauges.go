package server

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges are what is read when somebody asks for it: who is there, and how long the
// certificates last.
type gauges struct{ s *Server }

var (
	connectedGauge = prometheus.NewDesc("coterie_participant_connected",
		"Whether a participant is connected: 1, or 0.", []string{"participant"}, nil)
	expiresGauge = prometheus.NewDesc("coterie_certificate_expires_timestamp_seconds",
		"When the certificate of a participant or an operator ends.", []string{"holder"}, nil)
)

// Describe names them.
func (gauges) Describe(out chan<- *prometheus.Desc) {
	out <- connectedGauge
	out <- expiresGauge
}

// Collect reads them.
func (g gauges) Collect(out chan<- prometheus.Metric) {
	for i, p := range g.s.attendance.all() {
		here := 0.0
		if p.here {
			here = 1
		}
		out <- prometheus.MustNewConstMetric(connectedGauge, prometheus.GaugeValue, here, g.s.coordinator.names[i])
	}
	held, err := g.s.authority.Holders()
	if err != nil { // the other figures are true all the same
		g.s.coordinator.seldom.write(slog.LevelError, "", "the ends of certificates cannot be read", "error", err)
		return
	}
	for name, h := range held {
		out <- prometheus.MustNewConstMetric(expiresGauge, prometheus.GaugeValue, float64(h.Expires.Unix()), name)
	}
}
