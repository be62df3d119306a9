package server

import (
	"bytes"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
)

// leaveModels writes the models, and what they are, to a folder that is there.
func (c *Coordinator) leaveModels(out string, models []byte, participants []ParticipantRecord) error {
	tensors, err := model.ReadTensors[float64](bytes.NewReader(models), int64(len(models)))
	if err != nil {
		return err
	}
	encoding, err := artifact.EncodingOf(c.run)
	if err != nil {
		return err
	}
	var spent []event.Statement
	for _, p := range participants {
		if p.Spent != nil {
			spent = append(spent, *p.Spent)
		}
	}
	privacy := artifact.Spent(c.run, "it is the most exposed participant's, as the participants' last receipts state it", spent...)
	d, err := artifact.Describe(c.run, c.plan.Shape, encoding, privacy)
	if err != nil {
		return err
	}
	d.Server(len(tensors))
	_, err = artifact.Write(out, d, tensors, nil)
	return err
}
