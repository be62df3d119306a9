//go:build linux

package cuda_test

import (
	"os"
	"testing"

	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
)

func TestMain(m *testing.M) { os.Exit(cudatest.Main(m)) }
