package server

import (
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
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
	calls    *prometheus.HistogramVec
	records  prometheus.Histogram
	lasted   prometheus.Histogram
	closing  prometheus.Histogram
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
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "coterie_call_duration_seconds", Help: "How long participants' calls took, by call; Next waits for work.", Buckets: callBuckets,
		}, []string{"call"}),
		records: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "coterie_record_duration_seconds", Help: "From a release that is complete to one that is durable.", Buckets: callBuckets,
		}),
		lasted: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "coterie_round_duration_seconds", Help: "From opening a round to its end.", Buckets: prometheus.ExponentialBuckets(0.05, 4, 10),
		}),
		closing: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "coterie_round_closing_duration_seconds", Help: "From a round's last answer to its end: aggregation, and making the new state durable.", Buckets: callBuckets,
		}),
	}
	m.registry.MustRegister(m.round, m.asked, m.rounds, m.answers, m.bytes, m.refused, m.calls, m.records, m.lasted, m.closing,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// What has not happened yet is there with 0: a rate over something that is not there is
	// not 0, and no alarm goes off by it.
	for _, end := range []string{"closed", "abandoned"} {
		m.rounds.WithLabelValues(end)
	}
	for _, kind := range []string{"released", "declined", "left"} {
		m.answers.WithLabelValues(kind)
	}
	for _, reason := range transfer.Reasons() {
		m.refused.WithLabelValues(string(reason))
	}
	for procedure := range procedures {
		m.calls.WithLabelValues(path.Base(procedure))
	}
	return m
}

// callBuckets are from half a millisecond, a call that the disk has nothing to do with, to
// two minutes, the longest wait for work.
var callBuckets = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}

// procedures are the calls of the service: nobody makes up another label.
var procedures = map[string]bool{
	wire.FederationEnrolProcedure: true, wire.FederationRenewProcedure: true, wire.FederationJoinProcedure: true, wire.FederationNextProcedure: true,
	wire.FederationBroadcastProcedure: true, wire.FederationOfferProcedure: true, wire.FederationUploadProcedure: true, wire.FederationDeclineProcedure: true,
}

// called notes how long a call took.
func (m *metrics) called(procedure string, began time.Time) {
	if procedures[procedure] {
		m.calls.WithLabelValues(path.Base(procedure)).Observe(time.Since(began).Seconds())
	}
}

// recorded notes how long it took to make a release durable.
func (m *metrics) recorded(began time.Time) { m.records.Observe(time.Since(began).Seconds()) }

// ended notes how long a round took, and how long its closing.
func (m *metrics) ended(opened, closing time.Time) {
	m.lasted.Observe(time.Since(opened).Seconds())
	m.closing.Observe(time.Since(closing).Seconds())
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
