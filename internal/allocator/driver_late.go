package allocator

// What the driver takes for the first kernel lies behind the segments that were there before:
// those of a whole model if it comes from the host, as copies are no kernels. The sizes are
// those of the emulated driver (internal/emulate/library/memory.c).
const (
	codeRegion  = 96 << 20 // comes with the context
	codeBytes   = 72 << 20
	localRegion = 416 << 20 // local memory, which the first kernel exchanges for more
	localBytes  = 414 << 20
	moreRegion  = 512 << 20
	moreBytes   = 506 << 20
	launched    = 4 << 20   // with the first kernel, too,
	printed     = 10 << 20  // and for what assertions print
	blasRegion  = 64 << 20  // code that the first handle of cuBLAS brings
	blasBytes   = 64 << 20  // and what it allocates
	coresRegion = 256 << 20 // code that the first product on tensor cores brings
	otherRegion = 96 << 20  // likewise
)

// The regions of a context.
const (
	inCode = iota
	inLocal
)

// newLateDriver is the driver of a process in which no kernel has run.
func newLateDriver(top uint64) *modelDriver {
	d := &modelDriver{latest: inLocal, placed: make(map[uint64]span), next: top - codeRegion - localRegion, reserved: top + addressSpace, late: true}
	d.gaps.add(span{inCode, top - codeRegion + codeBytes, codeRegion - codeBytes})
	d.gaps.add(span{inLocal, d.next + localBytes, localRegion - localBytes})
	return d
}

// launch is the first kernel of a process that began without.
func (d *modelDriver) launch(top uint64) {
	local := span{inLocal, top - codeRegion - localRegion, localBytes}
	d.take(driverFirst)
	d.gaps.add(local)
	if d.gaps.remains(span{inLocal, local.addr, localRegion}) { // nothing else is in it
		if d.next == local.addr {
			d.next += localRegion
		} else {
			d.wideGap = span{inLocal, local.addr, localRegion - regionBytes} // a part of it stays
			d.wideGap.addr += regionBytes
		}
	}
	d.newRegion(moreRegion)
	d.gaps.takeIn(d.latest, moreBytes)
	d.take(launched)
	d.take(printed)
}

// multiply is the first handle of cuBLAS.
func (d *modelDriver) multiply() {
	d.fill(blasRegion)
	d.take(blasBytes)
}

// useTensorCores is the first product of numbers of 16 bits, or in TF32.
func (d *modelDriver) useTensorCores() {
	d.fill(coresRegion)
	d.fill(otherRegion)
}

// fill takes a region of its own.
func (d *modelDriver) fill(size int64) {
	d.newRegion(size)
	d.gaps.takeIn(d.latest, size)
}
