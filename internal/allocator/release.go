package allocator

// This file gives memory back to the driver: R12, R13 and R14.

// EmptyCache returns to the driver what it can (R13).
func (a *Allocator) EmptyCache() {
	a.synchronize()
	for _, small := range []bool{false, true} {
		a.releaseAll(a.poolOf(a.pools[0].id, small))
	}
}

// synchronize waits for all streams: every pending free completes.
func (a *Allocator) synchronize() {
	a.stats.Syncs++
	for _, h := range a.pending {
		if h != none {
			a.complete(h)
		}
	}
	a.pending, a.completed = a.pending[:0], 0
}

// releaseAll returns every whole free segment of a pool, and then unmaps the
// free pages of expandable ones.
func (a *Allocator) releaseAll(p *pool) {
	var toUnmap []Handle
	for _, h := range a.returnable(p) {
		if a.blocks.at(h).room != nil {
			toUnmap = append(toUnmap, h)
		} else {
			a.releaseSegment(h)
		}
	}
	for _, h := range toUnmap {
		a.unmap(h)
	}
}

// releaseSegment returns a free block that is a whole segment.
func (a *Allocator) releaseSegment(h Handle) {
	a.removeFree(h)
	b := a.blocks.at(h)
	a.driver.Free(b.addr, b.size)
	a.stats.DeviceFrees++
	a.stats.segmentGone(b.pool.small, b.size, b.size >= a.maxSplit)
	a.blocks.drop(h)
}

// releaseOversize is R12; it reports whether enough came back.
func (a *Allocator) releaseOversize(p *pool, stream uint16, size int64) bool {
	segments, enough := a.oversize(p, stream, size)
	for _, h := range segments {
		a.releaseSegment(h)
	}
	return enough
}

// oversize returns the free segments that R12 would release for a request, and
// whether they are enough.
func (a *Allocator) oversize(p *pool, stream uint16, size int64) (segments []Handle, enough bool) {
	if a.maxSplit == unlimited {
		return nil, false
	}
	wanted := max(size, a.maxSplit)
	set := &p.of(stream).free
	at := set.lowerBound(wanted, 0)
	if set.has(at) && a.blocks.at(set.get(at).block).room == nil {
		return []Handle{set.get(at).block}, true
	}
	sum := int64(0)
	for sum < wanted {
		a.work++
		var ok bool
		if at, ok = set.previous(at); !ok || set.get(at).size < a.maxSplit {
			break
		}
		if k := set.get(at); a.blocks.at(k.block).room == nil {
			sum += k.size
			segments = append(segments, k.block)
		}
	}
	return segments, sum >= wanted
}

func (a *Allocator) collectsGarbage() bool {
	return a.limit > 0 && a.settings.GCThreshold > 0
}

// collectGarbage is R14.
func (a *Allocator) collectGarbage() {
	for _, h := range a.garbage() {
		a.releaseSegment(h)
	}
}

// garbage returns the free segments that R14 would release now.
func (a *Allocator) garbage() []Handle {
	excess := a.stats.ReservedBytes[All].Current - int64(a.settings.GCThreshold*float64(a.limit))
	if !a.collectsGarbage() || excess <= 0 {
		return nil
	}
	p := a.pools[1]
	var candidates, victims []Handle
	ages := int64(0)
	for _, h := range a.returnable(p) {
		if b := a.blocks.at(h); b.prev == none && b.next == none {
			candidates = append(candidates, h)
			ages += p.searches - b.age
		}
	}
	count := len(candidates)
	for found := true; excess > 0 && found && count > 0; {
		found = false
		a.work += int64(len(candidates))
		mean := float64(ages) / float64(count)
		for i, h := range candidates {
			if h == none {
				continue
			}
			b := a.blocks.at(h)
			age := p.searches - b.age
			if b.room != nil || float64(age) < mean {
				continue
			}
			found = true
			excess -= b.size
			ages -= age
			count--
			candidates[i] = none
			victims = append(victims, h)
		}
	}
	return victims
}

// firstRelease returns the free segment that would be released first for the
// sake of a request that no free block meets, none if that cannot be told.
func (a *Allocator) firstRelease(p *pool, stream uint16, size int64) Handle {
	if garbage := a.garbage(); len(garbage) > 0 {
		return garbage[0]
	}
	if oversize, _ := a.oversize(p, stream, size); len(oversize) > 0 {
		return oversize[0]
	}
	return none
}
