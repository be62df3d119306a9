package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/coterie-fl/coterie/federation/transfer"
)

// metrics are what operators watch. Nothing here is private: the server has no
// more to tell than it was sent.
type metrics struct {
	registry *prometheus.Registry
	round    prometheus.Gauge
	asked    prometheus.Gauge
	rounds   *prometheus.CounterVec
	answers  *prometheus.CounterVec
	bytes    prometheus.Counter
	refused  *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		round:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "coterie_round", Help: "Round that is open, from 1."}),
		asked:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "coterie_round_asked", Help: "Participants asked in the open round."}),
		rounds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "coterie_rounds_total", Help: "Rounds that ended, by how: closed or abandoned.",
		}, []string{"end"}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "coterie_answers_total", Help: "Answers of participants: released, declined, or left the run.",
		}, []string{"kind"}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{Name: "coterie_received_bytes_total", Help: "Bytes of releases received."}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "coterie_refused_total", Help: "Requests refused, by reason.",
		}, []string{"reason"}),
	}
	m.registry.MustRegister(m.round, m.asked, m.rounds, m.answers, m.bytes, m.refused)
	return m
}

func (m *metrics) opened(r *openRound) {
	m.round.Set(float64(r.number + 1))
	m.asked.Set(float64(len(r.clients)))
}

func (m *metrics) closed(abandoned bool) {
	end := "closed"
	if abandoned {
		end = "abandoned"
	}
	m.rounds.WithLabelValues(end).Inc()
}

func (m *metrics) answered(kind string) { m.answers.WithLabelValues(kind).Inc() }

func (m *metrics) received(n int) { m.bytes.Add(float64(n)) }

func (m *metrics) refuse(reason transfer.Reason) { m.refused.WithLabelValues(string(reason)).Inc() }
