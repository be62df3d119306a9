package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/artifact/onnx"
	"github.com/coterie-fl/coterie/internal/durable"
)

func (a *app) newExportCommand() *cobra.Command {
	var format, client, out string
	var cluster int
	cmd := &cobra.Command{
		Use:   "export MODEL",
		Short: "Write a trained model for other programs (ONNX)",
		Long: "Write one model of a run directory, or of the out folder that coterie serve and join leave, as an ONNX file, with the encoding of its columns in the graph.\n" +
			"Which model: the named client's, or what somebody gets who was not there in training. docs/models.md tells which that is.",
		Example: "  coterie export runs/wards --format onnx --client north --out north.onnx",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "onnx" {
				return fmt.Errorf("%w: --format %q is not known; allowed: onnx", errUsage, format)
			}
			if out == "" {
				return fmt.Errorf("%w: name the file: --out FILE", errUsage)
			}
			m, err := openModel(args[0])
			if err != nil {
				return err
			}
			c, err := m.Choose(client)
			if cluster >= 0 {
				c, err = m.Cluster(cluster)
			}
			if err != nil {
				return whoseIsUsage(err)
			}
			if err := writeONNX(out, m, c); err != nil {
				return err
			}
			full, err := filepath.Abs(out)
			if err != nil {
				return fmt.Errorf("find the file: %w", err)
			}
			return a.tell(struct {
				Model       string `json:"model"`
				ModelSHA256 string `json:"model_sha256"`
				Format      string `json:"format"`
				Chosen      string `json:"chosen"`
				Why         string `json:"why"`
				Out         string `json:"out"`
			}{m.Path, m.ModelSHA256, format, c.String(), c.Why, full}, "%s: %s\nwritten %s", &c, c.Why, full)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&format, "format", "onnx", "onnx")
	flags.StringVar(&client, "client", "", "the client whose model is meant (default: a newcomer's)")
	flags.IntVar(&cluster, "cluster", -1, "the cluster whose model is meant")
	flags.StringVar(&out, "out", "", "the file")
	return cmd
}

// writeONNX writes a model; a participant's own is for its owner alone.
func writeONNX(path string, m *artifact.Model, c artifact.Choice) error {
	about, err := m.Metadata()
	if err != nil {
		return err
	}
	centre, scale := c.Scaled()
	mode := os.FileMode(0o644)
	if c.File == artifact.PersonalFile {
		mode = 0o600
	}
	return durable.Replace(path, mode, func(w io.Writer) error {
		return onnx.Write(w, onnx.Graph{
			Encoding: m.Encoding, Shape: m.Shape, Model: m.Description.Model, Loss: m.Loss,
			Theta: c.Parameters(), Centre: centre, Scale: scale, Metadata: about,
		})
	})
}
