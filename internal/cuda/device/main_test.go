//go:build linux

package device

import (
	"os"
	"testing"

	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
)

func TestMain(m *testing.M) { os.Exit(cudatest.Main(m)) }
