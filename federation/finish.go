package federation

import (
	"bytes"
	"context"
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/model"
)

// finish records the end of the run and lets participants fetch its models.
func (c *Coordinator) finish(ctx context.Context, stopped string) (Finished, error) {
	models, err := modelFile(serverTensors(c.run), c.state.Hypotheses, c.model.Parameters())
	if err != nil {
		return Finished{}, err
	}
	b, err := c.algorithm.Broadcast(c.state)
	if err != nil {
		return Finished{}, err
	}
	f := Finished{Rounds: c.state.Round, Stopped: stopped, models: newContent(models), broadcast: newContent(EncodeBroadcast(b))}
	if f.ModelSHA256, err = model.TensorsSHA256(models); err != nil {
		return Finished{}, err
	}
	rounds, err := c.store.Rounds(ctx, c.plan.Run)
	if err != nil {
		return Finished{}, err
	}
	for _, r := range rounds {
		if r.Status == store.RoundAbandoned {
			f.Abandoned++
		}
	}
	if err := c.store.SetRunStatus(ctx, c.plan.Run, store.Finished, stopped); err != nil {
		return Finished{}, err
	}
	c.gate.Lock()
	c.finished = &f
	c.gate.Unlock()
	c.log.Info("run finished", "rounds", f.Rounds, "abandoned", f.Abandoned, "stopped", stopped, "model_sha256", f.ModelSHA256)
	c.news.ring()
	return f, nil
}

// Models are the returned models of a finished run, as safetensors.
func (f Finished) Models() []byte { return f.models.bytes }

// serverTensors is what a simulation calls the server's models.
func serverTensors(run config.Run) string {
	if run.Data.OfSilos() {
		return "server"
	}
	return "hypothesis"
}

// modelFile is the file of the models that a run returns: the same bytes as a
// simulation's. Beside them it may hold what is needed to use them.
func modelFile(prefix string, hypotheses []float64, parameters int, beside ...model.Tensor[float64]) ([]byte, error) {
	var tensors []model.Tensor[float64]
	for j := 0; (j+1)*parameters <= len(hypotheses); j++ {
		v := hypotheses[j*parameters : (j+1)*parameters]
		tensors = append(tensors, model.Tensor[float64]{Name: fmt.Sprintf("%s.%d", prefix, j), Shape: []int{len(v)}, Values: v})
	}
	var out bytes.Buffer
	if err := model.WriteTensors(&out, append(tensors, beside...)); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
