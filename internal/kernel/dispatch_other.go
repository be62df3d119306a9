//go:build !amd64 || purego

package kernel

// vectorised, wide: there is no assembly in this build.
const vectorised, wide = false, false

func axpy[F Float](alpha F, x, y []F) { axpyTwin(alpha, x, y) }

func scale[F Float](dst []F, alpha F, x []F) { scaleTwin(dst, alpha, x) }

func sub[F Float](dst, x, y []F) { subTwin(dst, x, y) }

func maximum[F Float](dst, x, y []F) { maximumTwin(dst, x, y) }

func maxPoolGrad[F Float](left, y, x, dx []F) { maxPoolGradTwin(left, y, x, dx) }

func maximum4[F Float](dst, a, b, c, d []F) { maximum4Twin(dst, a, b, c, d) }

func maxPoolGradPair[F Float](left, y, a, b, da, db []F) { maxPoolGradPairTwin(left, y, a, b, da, db) }

func dot[F Float](x, y []F) float64 { return dotTwin(x, y) }

func squaredNorm[F Float](x []F) float64 { return squaredNormTwin(x) }

func squaredDistance[F Float](x, y []F) float64 { return squaredDistanceTwin(x, y) }

func relu[F Float](dst, x []F) { reluTwin(dst, x) }

func reluGrad[F Float](dst, x, dy []F) { reluGradTwin(dst, x, dy) }

func leakyRelu[F Float](dst []F, slope F, x []F) { leakyReluTwin(dst, slope, x) }

func leakyReluGrad[F Float](dst []F, slope F, x, dy []F) { leakyReluGradTwin(dst, slope, x, dy) }

func sigmoidGrad[F Float](dst, y, dy []F) { sigmoidGradTwin(dst, y, dy) }

func tanhGrad[F Float](dst, y, dy []F) { tanhGradTwin(dst, y, dy) }

func tanh[F Float](dst, x []F) { tanhTwin(dst, x) }

func exp[F Float](dst, x []F) { expTwin(dst, x) }

func sigmoid[F Float](dst, x []F) { sigmoidTwin(dst, x) }

func addToRows[F Float](x, bias []F) { addToRowsTwin(x, bias) }

func addToRowsRelu[F Float](x, bias []F) { addToRowsReluTwin(x, bias) }

func sumRows[F Float](dst, x []F) { sumRowsTwin(dst, x) }

func sumProducts[F Float](dst, x, y []F) { sumProductsTwin(dst, x, y) }

func affineRows[F Float](dst, x, factor, bias []F) { affineRowsTwin(dst, x, factor, bias) }

func normals32(dst []float32, sigma float32, words []byte) { normals32Twin(dst, sigma, words) }

func narrow(dst []float32, x []float64) { narrowTwin(dst, x) }

func addSingle(x []float32, y []float64) { addSingleTwin(x, y) }

func addTruncated[F Float](factor float64, x []F, y []float64) { addTruncatedTwin(factor, x, y) }

func addTruncatedProducts[F Float](acc []float64, x []F, d []float64, rows int) {
	addTruncatedProductsTwin(acc, x, d, rows)
}

func tile[F Float](w *tileWork[F]) { tileTwin(w) }

func pack[F Float](dst []F, rows int, src []F, stride int, columns []int) bool {
	return packTwin(dst, rows, src, stride, columns)
}

func transpose[F Float](dst []F, dstRow int, src []F, srcRow, rows, cols int) {
	transposeTwin(dst, dstRow, src, srcRow, rows, cols)
}
