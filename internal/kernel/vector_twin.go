package kernel

// The twins of the element-wise kernels and of the sums.

func axpyTwin[F Float](alpha F, x, y []F) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += alpha * v
	}
}

func scaleTwin[F Float](dst []F, alpha F, x []F) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = alpha * v
	}
}

func addTwin[F Float](dst, x, y []F) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] + y[i]
	}
}

func subTwin[F Float](dst, x, y []F) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] - y[i]
	}
}

func maximumTwin[F Float](dst, x, y []F) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = max(x[i], y[i])
	}
}

func maxPoolGradTwin[F Float](left, y, x, dx []F) {
	y, x, dx = y[:len(left)], x[:len(left)], dx[:len(left)]
	for i := range left {
		if x[i] == y[i] {
			dx[i] += left[i]
			left[i] = 0
		}
	}
}

func maximum4Twin[F Float](dst, a, b, c, d []F) {
	a, b, c, d = a[:len(dst)], b[:len(dst)], c[:len(dst)], d[:len(dst)]
	for i := range dst {
		dst[i] = max(a[i], b[i], c[i], d[i])
	}
}

func maxPoolGradPairTwin[F Float](left, y, a, b, da, db []F) {
	y, a, b, da, db = y[:len(left)], a[:len(left)], b[:len(left)], da[:len(left)], db[:len(left)]
	for i := range left {
		da[i], db[i] = 0, 0
		switch {
		case a[i] == y[i]:
			da[i], left[i] = left[i], 0
		case b[i] == y[i]:
			db[i], left[i] = left[i], 0
		}
	}
}

// Sums run over four accumulators: one would wait for itself.

func dotTwin[F Float](x, y []F) float64 {
	var s [4]float64
	y = y[:len(x)]
	i := 0
	for ; i+4 <= len(x); i += 4 {
		v, w := x[i:i+4:i+4], y[i:i+4:i+4]
		s[0] += float64(v[0]) * float64(w[0])
		s[1] += float64(v[1]) * float64(w[1])
		s[2] += float64(v[2]) * float64(w[2])
		s[3] += float64(v[3]) * float64(w[3])
	}
	for ; i < len(x); i++ {
		s[0] += float64(x[i]) * float64(y[i])
	}
	return s[0] + s[1] + (s[2] + s[3])
}

func squaredNormTwin[F Float](x []F) float64 { return dotTwin(x, x) }

func squaredDistanceTwin[F Float](x, y []F) float64 {
	var s [2]float64
	y = y[:len(x)]
	i := 0
	for ; i+2 <= len(x); i += 2 {
		d, e := float64(x[i])-float64(y[i]), float64(x[i+1])-float64(y[i+1])
		s[0] += d * d
		s[1] += e * e
	}
	if i < len(x) {
		d := float64(x[i]) - float64(y[i])
		s[0] += d * d
	}
	return s[0] + s[1]
}
