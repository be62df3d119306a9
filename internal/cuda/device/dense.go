//go:build linux

package device

// denseWidth is how many outputs of a linear layer a block computes.
func denseWidth(out int) int {
	if out <= 32 {
		return 32
	}
	return 64
}

// denseParts is in how many parts a linear layer's sums are made, of outputs and of gradients
// of a chunk of examples: as many as were timed best on an H200 where layers are large, and no
// more than leave every part something to add. A block has the weights of a part's examples
// at once.
func denseParts(chunk, in, out int) (outputs, gradients int) {
	wide := denseWidth(out)
	across, most := tiles(out, wide), 64
	if wide == 64 {
		most = 48
	}
	outputs = min(tiles(4*processors, tiles(chunk, 128)*across), most, tiles(in, 64))
	gradients = max(min(tiles(2*processors, tiles(in, 128)*across), 8, tiles(chunk, 64)), tiles(chunk, mostWeights-16))
	return outputs, gradients
}
