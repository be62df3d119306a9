//go:build linux

// Package device drives an NVIDIA GPU through the driver's library, which is loaded at run
// time: no cgo, no C compiler, no CUDA headers. A program that imports it is not static.
package device

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/coterie-fl/coterie/internal/cuda"
)

// driver is the part of CUDA's driver interface that is needed.
type driver struct {
	init               func(flags uint32) int32
	driverVersion      func(v *int32) int32
	deviceCount        func(n *int32) int32
	deviceGet          func(dev *int32, ordinal int32) int32
	deviceName         func(name *byte, n, dev int32) int32
	deviceAttribute    func(v *int32, attribute, dev int32) int32
	primaryCtxRetain   func(ctx *uintptr, dev int32) int32
	ctxSetCurrent      func(ctx uintptr) int32
	memInfo            func(free, total *uint64) int32
	memAlloc           func(p *uintptr, n uint64) int32
	memFree            func(p uintptr) int32
	hostRegister       func(p unsafe.Pointer, n uint64, flags uint32) int32
	hostUnregister     func(p unsafe.Pointer) int32
	hostPointer        func(at *uintptr, p unsafe.Pointer, flags uint32) int32
	copyToDevice       func(dst uintptr, src unsafe.Pointer, n uint64, stream uintptr) int32
	copyToHost         func(dst unsafe.Pointer, src uintptr, n uint64, stream uintptr) int32
	memset             func(dst uintptr, v uint8, n uint64, stream uintptr) int32
	moduleLoad         func(m *uintptr, image *byte) int32
	moduleFunction     func(f *uintptr, m uintptr, name string) int32
	functionAttribute  func(f uintptr, attribute, v int32) int32
	streamCreate       func(s *uintptr, flags uint32, priority int32) int32
	streamSynchronize  func(s uintptr) int32
	streamWaitEvent    func(s, e uintptr, flags uint32) int32
	streamWaitValue    func(s, at uintptr, value, flags uint32) int32 // nil: this driver has none
	streamBeginCapture func(s uintptr, mode int32) int32
	streamEndCapture   func(s uintptr, graph *uintptr) int32
	graphInstantiate   func(row *uintptr, graph uintptr, flags uint64) int32
	graphLaunch        func(row, stream uintptr) int32
	graphDestroy       func(graph uintptr) int32
	graphExecDestroy   func(row uintptr) int32
	eventCreate        func(e *uintptr, flags uint32) int32
	eventRecord        func(e, stream uintptr) int32
	eventSynchronize   func(e uintptr) int32
	launchKernel       func(f uintptr, gx, gy, gz, bx, by, bz, shared uint32, stream uintptr, params, extra unsafe.Pointer) int32

	arguments struct { // of a launch, where they stay
		slots   [20]uint64
		structs [4][160]uint64
		params  [20]unsafe.Pointer
	}
	stream     uintptr
	passed     [2]uintptr // events: the norms of a side are with the host
	departed   [2]uintptr // and what lies on a side of the landing has left
	beside     uintptr    // a second stream, for what runs at the same time
	parts      uintptr    // event: where it begins
	joins      uintptr    // and where it has ended
	processors int32      // how many the device has
	shared     int        // bytes of shared memory that a block may ask for
	tensor     bool       // it has the tensor cores that tensor.cuh is for
	groups     bool       // and those that groups.cuh is for
	taken      []uintptr  // memory, until it is given back
	failed     error      // the first: everything after it is idle
	code       int32      // of that
}

// About is what a device is called.
type About struct{ Name, Driver string }

// Of compute capabilities the least that the kernels are made for.
const leastMajor, leastMinor = 7, 5

// tensorMajor is the least of those with products of bfloat16 on tensor cores.
const tensorMajor = 8

// groupsMajor and groupsMinor are the one that groups of warps are made for, and groupsDriver the
// first driver that knows them.
const groupsMajor, groupsMinor, groupsDriver = 9, 0, 12000

// open loads the driver's library and readies device n. The calling goroutine must stay on
// its thread.
func open(library string, n int) (*driver, About, error) {
	lib, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, About{}, fmt.Errorf("NVIDIA's driver is not here: %w", err)
	}
	d := &driver{}
	for name, f := range map[string]any{
		"cuInit": &d.init, "cuDriverGetVersion": &d.driverVersion, "cuDeviceGetCount": &d.deviceCount, "cuDeviceGet": &d.deviceGet,
		"cuDeviceGetName": &d.deviceName, "cuDeviceGetAttribute": &d.deviceAttribute,
		"cuDevicePrimaryCtxRetain": &d.primaryCtxRetain, "cuCtxSetCurrent": &d.ctxSetCurrent,
		"cuMemGetInfo_v2": &d.memInfo, "cuMemAlloc_v2": &d.memAlloc, "cuMemFree_v2": &d.memFree,
		"cuMemHostRegister_v2": &d.hostRegister, "cuMemHostUnregister": &d.hostUnregister, "cuMemHostGetDevicePointer_v2": &d.hostPointer,
		"cuMemcpyHtoDAsync_v2": &d.copyToDevice, "cuMemcpyDtoHAsync_v2": &d.copyToHost, "cuMemsetD8Async": &d.memset,
		"cuModuleLoadData": &d.moduleLoad, "cuModuleGetFunction": &d.moduleFunction, "cuFuncSetAttribute": &d.functionAttribute,
		"cuStreamCreateWithPriority": &d.streamCreate, "cuStreamSynchronize": &d.streamSynchronize, "cuStreamWaitEvent": &d.streamWaitEvent, "cuLaunchKernel": &d.launchKernel,
		"cuStreamBeginCapture_v2": &d.streamBeginCapture, "cuStreamEndCapture": &d.streamEndCapture, "cuGraphInstantiateWithFlags": &d.graphInstantiate,
		"cuGraphLaunch": &d.graphLaunch, "cuGraphDestroy": &d.graphDestroy, "cuGraphExecDestroy": &d.graphExecDestroy,
		"cuEventCreate": &d.eventCreate, "cuEventRecord": &d.eventRecord, "cuEventSynchronize": &d.eventSynchronize,
	} {
		if _, err := purego.Dlsym(lib, name); err != nil {
			return nil, About{}, fmt.Errorf("NVIDIA's driver %s is too old: it has no %s", library, name)
		}
		purego.RegisterLibFunc(f, lib, name)
	}
	if name := "cuStreamWaitValue32_v2"; has(lib, name) && os.Getenv("CUDA_LAUNCH_BLOCKING") != "1" && os.Getenv("COTERIE_CUDA_GATES") != "off" { // who starts a kernel then waits for it
		purego.RegisterLibFunc(&d.streamWaitValue, lib, name)
	}
	var version, count, dev, major, minor int32
	d.must(d.init(0), "cuInit")
	d.must(d.driverVersion(&version), "cuDriverGetVersion")
	d.must(d.deviceCount(&count), "cuDeviceGetCount")
	if d.failed != nil {
		return nil, About{}, d.failed
	}
	if n < 0 || n >= int(count) {
		return nil, About{}, fmt.Errorf("there is no device %d: the driver knows %d, counted from 0", n, count)
	}
	name := make([]byte, 128)
	d.must(d.deviceGet(&dev, int32(n)), "cuDeviceGet")
	d.must(d.deviceName(&name[0], 128, dev), "cuDeviceGetName")
	d.must(d.deviceAttribute(&major, 75, dev), "cuDeviceGetAttribute")
	d.must(d.deviceAttribute(&minor, 76, dev), "cuDeviceGetAttribute")
	d.must(d.deviceAttribute(&d.processors, 16, dev), "cuDeviceGetAttribute")
	var shared int32
	d.must(d.deviceAttribute(&shared, 97, dev), "cuDeviceGetAttribute")
	d.shared = max(sharedBytes, int(shared)-declaredBytes)
	about := About{string(name[:max(0, bytes.IndexByte(name, 0))]), fmt.Sprintf("CUDA %d.%d", version/1000, version%1000/10)}
	if d.failed == nil && (major < leastMajor || major == leastMajor && minor < leastMinor) {
		return nil, about, fmt.Errorf("%s has compute capability %d.%d; the kernels need %d.%d or more", about.Name, major, minor, leastMajor, leastMinor)
	}
	d.tensor = major >= tensorMajor
	d.groups = major == groupsMajor && minor == groupsMinor && version >= groupsDriver && d.shared >= max(groupBlocks[0].shared(), groupSumShared, pairShared)
	var ctx uintptr
	d.must(d.primaryCtxRetain(&ctx, dev), "cuDevicePrimaryCtxRetain")
	d.must(d.ctxSetCurrent(ctx), "cuCtxSetCurrent")
	d.must(d.streamCreate(&d.stream, 1, 0), "cuStreamCreateWithPriority")
	d.must(d.streamCreate(&d.beside, 1, -1), "cuStreamCreateWithPriority") // where there is room, it is for what runs beside
	for _, e := range []*uintptr{&d.passed[0], &d.passed[1], &d.departed[0], &d.departed[1], &d.parts, &d.joins} {
		const untimed = 2
		d.must(d.eventCreate(e, untimed), "cuEventCreate")
	}
	return d, about, d.failed
}

func has(lib uintptr, name string) bool {
	_, err := purego.Dlsym(lib, name)
	return err == nil
}

// must notes the first failure.
func (d *driver) must(code int32, what string) {
	if code != 0 && d.failed == nil {
		d.failed, d.code = fmt.Errorf("%s: CUDA error %d%s", what, code, meaning[code]), code
	}
}

// lost says that something has failed that others of this program will find failed, too: most errors
// stay, but one who asks for too much memory has others go on.
func (d *driver) lost() bool {
	const outOfMemory = 2
	return d.code != 0 && d.code != outOfMemory
}

// meaning is of errors that people meet.
var meaning = map[int32]string{
	2:   " (out of memory)",
	35:  " (the driver is older than the kernels need; update it)",
	46:  " (the device is in use by others)",
	100: " (there is no device)",
	101: " (there is no such device)",
	209: " (no kernel image for this device)",
	218: " (the kernels do not compile for this device)",
	222: " (the driver is older than the kernels need; update it)",
	700: " (illegal address)",
	719: " (a kernel failed)",
	900: " (not possible while kernels are recorded)",
	803: " (driver and library are of different versions)",
	999: " (unknown; the device may be lost)",
}

// alloc takes memory and poisons it: what nobody wrote is no number.
func (d *driver) alloc(bytes int) uintptr {
	var p uintptr
	if d.failed == nil && bytes > 0 {
		closed.Lock()
		if code := d.memAlloc(&p, uint64(bytes)); code != 0 {
			d.must(code, fmt.Sprintf("cuMemAlloc of %s%s", cuda.Megabytes(bytes), d.left()))
		}
		closed.Unlock()
	}
	if d.failed == nil && bytes > 0 {
		d.taken = append(d.taken, p)
		d.must(d.memset(p, 0xff, uint64(bytes), d.stream), "cuMemsetD8Async")
	}
	return p
}

// left says how much memory is free, if the driver does.
func (d *driver) left() string {
	var free, total uint64
	if d.memInfo(&free, &total) != 0 {
		return ""
	}
	return fmt.Sprintf(" (free are %s of %s)", cuda.Megabytes(int(free)), cuda.Megabytes(int(total)))
}

// giveBack frees all memory.
func (d *driver) giveBack() error {
	closed.Lock()
	defer closed.Unlock()
	for _, p := range d.taken { // also once something has failed: others may use the device
		d.must(d.memFree(p), "cuMemFree")
	}
	d.taken = d.taken[:0]
	return d.failed
}

func (d *driver) clear(p uintptr, bytes int) {
	if d.failed == nil {
		d.must(d.memset(p, 0, uint64(bytes), d.stream), "cuMemsetD8Async")
	}
}

// toDevice and toHost copy without waiting: the memory must stay as it is until wait.
func (d *driver) toDevice(dst uintptr, src []byte) {
	if d.failed == nil && len(src) > 0 {
		d.must(d.copyToDevice(dst, unsafe.Pointer(&src[0]), uint64(len(src)), d.stream), "cuMemcpyHtoDAsync")
	}
}

func (d *driver) toHost(dst []byte, src uintptr) {
	if d.failed == nil && len(dst) > 0 {
		d.must(d.copyToHost(unsafe.Pointer(&dst[0]), src, uint64(len(dst)), d.stream), "cuMemcpyDtoHAsync")
	}
}

// register has the driver know memory of this program, so that it is copied without a detour, and
// kernels find it at an address of their own. Where the driver refuses, that is 0.
func (d *driver) register(memory []byte) (at uintptr) {
	const mapped = 2
	closed.Lock()
	defer closed.Unlock()
	if d.hostRegister(unsafe.Pointer(&memory[0]), uint64(len(memory)), mapped) != 0 {
		return 0
	}
	if d.hostPointer(&at, unsafe.Pointer(&memory[0]), 0) != 0 {
		d.must(d.hostUnregister(unsafe.Pointer(&memory[0])), "cuMemHostUnregister")
		return 0
	}
	return at
}

// unregister ends what register began; at is what it gave.
func (d *driver) unregister(memory []byte, at uintptr) {
	if at != 0 {
		closed.Lock()
		defer closed.Unlock()
		d.must(d.hostUnregister(unsafe.Pointer(&memory[0])), "cuMemHostUnregister")
	}
}

func (d *driver) wait() error {
	if d.failed == nil {
		d.must(d.streamSynchronize(d.stream), "cuStreamSynchronize")
	}
	return d.failed
}

// atOnce starts what one and other start so that both may run at the same time; what is
// started next waits for both. Neither may write what the other reads or writes.
func (d *driver) atOnce(one, other func()) {
	d.aside(one)
	other()
	d.rejoin()
}

// since starts what do starts beside all that was started since an event, until rejoin.
func (d *driver) since(event uintptr, do func()) {
	if d.failed == nil {
		d.must(d.streamWaitEvent(d.beside, event, 0), "cuStreamWaitEvent")
	}
	d.onBeside(do)
}

// waitValue has what is started next wait until a number in this program's memory, which kernels find at
// an address, is that one. What it gives on is not 0 where that cannot be.
func (d *driver) waitValue(number uint32, at uintptr) int32 {
	const notSupported, orAbove = 801, 0
	if d.streamWaitValue == nil {
		return notSupported
	}
	return d.streamWaitValue(d.stream, at, number, orAbove)
}

// aside starts what do starts beside what is started next, until rejoin: it waits for all that
// was started before. Nothing up to there may write what it reads or writes.
func (d *driver) aside(do func()) {
	d.part()
	d.onBeside(do)
}

// part has what is started on the second stream wait for all that was started on the first one.
func (d *driver) part() { d.order(d.parts, d.stream, d.beside) }

// onBeside starts what do starts on the second stream.
func (d *driver) onBeside(do func()) {
	d.stream, d.beside = d.beside, d.stream
	do()
	d.stream, d.beside = d.beside, d.stream
}

// rejoin has what is started next wait for what runs aside.
func (d *driver) rejoin() { d.order(d.joins, d.beside, d.stream) }

// order has what is started next on one stream wait for what was started on another.
func (d *driver) order(event, first, then uintptr) {
	if d.failed == nil {
		d.must(d.eventRecord(event, first), "cuEventRecord")
	}
	if d.failed == nil {
		d.must(d.streamWaitEvent(then, event, 0), "cuStreamWaitEvent")
	}
}

// mark notes that all which was started so far is a side's; waitFor waits for it, and not for
// what was started since.
func (d *driver) mark(side int) {
	if d.failed == nil {
		d.must(d.eventRecord(d.passed[side], d.stream), "cuEventRecord")
	}
}

func (d *driver) waitFor(side int) error {
	if d.failed == nil {
		d.must(d.eventSynchronize(d.passed[side]), "cuEventSynchronize")
	}
	return d.failed
}

// launch starts a kernel on a grid of blocks, which have so many bytes of shared memory beside
// what they declare. Arguments are addresses, ints, float32s,
// float64s and structs of int32s and addresses, which lie as in C.
func (d *driver) launch(f uintptr, name string, grid [3]int, threads, shared int, args ...any) {
	if d.failed != nil || grid[0] == 0 || grid[1] == 0 || grid[2] == 0 {
		return
	}
	slots, structs, params := &d.arguments.slots, &d.arguments.structs, &d.arguments.params
	used := 0
	for i, a := range args {
		params[i] = unsafe.Pointer(&slots[i])
		switch v := a.(type) {
		case uintptr:
			slots[i] = uint64(v)
			continue
		case int:
			slots[i] = uint64(uint32(int32(v)))
			continue
		case float64:
			slots[i] = math.Float64bits(v)
			continue
		case float32:
			slots[i] = uint64(math.Float32bits(v))
			continue
		case act:
			*(*act)(unsafe.Pointer(&slots[i])) = v
			continue
		case window:
			*(*window)(unsafe.Pointer(&structs[used])) = v
		case direct:
			*(*direct)(unsafe.Pointer(&structs[used])) = v
		case taps:
			*(*taps)(unsafe.Pointer(&structs[used])) = v
		case unpooling:
			*(*unpooling)(unsafe.Pointer(&structs[used])) = v
		case pooling:
			*(*pooling)(unsafe.Pointer(&structs[used])) = v
		case pool:
			*(*pool)(unsafe.Pointer(&structs[used])) = v
		case room:
			*(*room)(unsafe.Pointer(&structs[used])) = v
		case cuda.Keys:
			*(*cuda.Keys)(unsafe.Pointer(&structs[used])) = v
		case turning:
			*(*turning)(unsafe.Pointer(&structs[used])) = v
		case cuda.MoveOrder:
			*(*cuda.MoveOrder)(unsafe.Pointer(&structs[used])) = v
		case *factorList: // the largest
			params[i] = unsafe.Pointer(v)
			continue
		case filterList:
			*(*filterList)(unsafe.Pointer(&structs[used])) = v
		case linears:
			*(*linears)(unsafe.Pointer(&structs[used])) = v
		case thin:
			*(*thin)(unsafe.Pointer(&structs[used])) = v
		case patch:
			*(*patch)(unsafe.Pointer(&structs[used])) = v
		case tensorTaps:
			*(*tensorTaps)(unsafe.Pointer(&structs[used])) = v
		case halves:
			*(*halves)(unsafe.Pointer(&structs[used])) = v
		case groupMatrices:
			*(*groupMatrices)(unsafe.Pointer(&structs[used])) = v
		case summeds:
			*(*summeds)(unsafe.Pointer(&structs[used])) = v
		case parts:
			*(*parts)(unsafe.Pointer(&structs[used])) = v
		case textTimes:
			*(*textTimes)(unsafe.Pointer(&structs[used])) = v
		case textChain:
			*(*textChain)(unsafe.Pointer(&structs[used])) = v
		case keptRows:
			*(*keptRows)(unsafe.Pointer(&structs[used])) = v
		case textMatrices:
			*(*textMatrices)(unsafe.Pointer(&structs[used])) = v
		case textSummeds:
			*(*textSummeds)(unsafe.Pointer(&structs[used])) = v
		case forming:
			*(*forming)(unsafe.Pointer(&structs[used])) = v
		case heads:
			*(*heads)(unsafe.Pointer(&structs[used])) = v
		default:
			d.must(1, fmt.Sprintf("%s: an argument of type %T", name, a))
			return
		}
		params[i] = unsafe.Pointer(&structs[used])
		used++
	}
	d.must(d.launchKernel(f, uint32(grid[0]), uint32(grid[1]), uint32(grid[2]), uint32(threads), 1, 1, uint32(shared), d.stream, unsafe.Pointer(&params[0]), nil), name)
}

// What kernels take, as common.cuh, conv.cuh and other.cuh have it.
type (
	act struct {
		kind  int32
		slope float32
	}
	window struct {
		examples                                int32
		outH, outW, outC                        int32
		inH, inW, inC                           int32
		kernelH, kernelW, stride, padding, back int32
	}
	turning struct {
		bound, deviation, taken float32
		last                    int32
	}
	pool struct {
		examples, outH, outW, inH, inW, channels, kernel, stride, padding int32
		overChannels, overWidth                                           uint32
	}
	factorList [960]float32
	room       struct {
		kept, squares                        uintptr
		keptRow, squaresRow, kept0, squares0 int32
	}
)
