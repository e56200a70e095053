package allocator

// This file gives memory back to the driver: R12, R13 and R14.

// releaseCachedBlocks returns to the driver what it can (R13).
func (a *cachingAllocator) releaseCachedBlocks() {
	a.synchronizeAndFreeEvents()
	for _, small := range []bool{false, true} {
		a.releaseBlocks(a.poolOf(a.pools[0].id, small))
	}
}

// synchronizeAndFreeEvents waits for all streams: every pending free completes.
func (a *cachingAllocator) synchronizeAndFreeEvents() {
	a.stats.Syncs++
	for _, h := range a.cudaEvents {
		if h != noBlock {
			a.freeBlock(h)
		}
	}
	a.cudaEvents, a.completed = a.cudaEvents[:0], 0
}

// releaseBlocks returns every whole free segment of a pool, and then unmaps the
// free pages of expandable ones.
func (a *cachingAllocator) releaseBlocks(p *blockPool) {
	var toUnmap []blockIndex
	for _, h := range a.releasableBlocks(p) {
		if a.blocks.at(h).expandable != nil {
			toUnmap = append(toUnmap, h)
		} else {
			a.releaseBlock(h)
		}
	}
	for _, h := range toUnmap {
		a.unmapBlock(h)
	}
}

// releaseBlock returns a free block that is a whole segment.
func (a *cachingAllocator) releaseBlock(h blockIndex) {
	a.removeFree(h)
	b := a.blocks.at(h)
	a.driver.free(b.addr, b.size)
	a.stats.DeviceFrees++
	a.stats.countReleased(b.pool.isSmall, b.size, b.size >= a.maxSplit)
	a.blocks.drop(h)
}

// releaseAvailableCachedBlocks is R12; it reports whether enough came back.
func (a *cachingAllocator) releaseAvailableCachedBlocks(p *blockPool, stream uint16, size int64) bool {
	segments, enough := a.oversize(p, stream, size)
	for _, h := range segments {
		a.releaseBlock(h)
	}
	return enough
}

// oversize returns the free segments that R12 would release for a request, and
// whether they are enough.
func (a *cachingAllocator) oversize(p *blockPool, stream uint16, size int64) (segments []blockIndex, enough bool) {
	if a.maxSplit == unlimited {
		return nil, false
	}
	wanted := max(size, a.maxSplit)
	set := &p.of(stream).blocks
	at := set.lowerBound(wanted, 0)
	if set.has(at) && a.blocks.at(set.get(at).block).expandable == nil {
		return []blockIndex{set.get(at).block}, true
	}
	sum := int64(0)
	for sum < wanted {
		a.work++
		var ok bool
		if at, ok = set.previous(at); !ok || set.get(at).size < a.maxSplit {
			break
		}
		if k := set.get(at); a.blocks.at(k.block).expandable == nil {
			sum += k.size
			segments = append(segments, k.block)
		}
	}
	return segments, sum >= wanted
}

func (a *cachingAllocator) collectsGarbage() bool {
	return a.limit > 0 && a.settings.GCThreshold > 0
}

// garbageCollectCachedBlocks is R14.
func (a *cachingAllocator) garbageCollectCachedBlocks() {
	for _, h := range a.garbage() {
		a.releaseBlock(h)
	}
}

// garbage returns the free segments that R14 would release now.
func (a *cachingAllocator) garbage() []blockIndex {
	excess := a.stats.ReservedBytes[All].Current - int64(a.settings.GCThreshold*float64(a.limit))
	if !a.collectsGarbage() || excess <= 0 {
		return nil
	}
	p := a.pools[1]
	var candidates, victims []blockIndex
	ages := int64(0)
	for _, h := range a.releasableBlocks(p) {
		if b := a.blocks.at(h); b.prev == noBlock && b.next == noBlock {
			candidates = append(candidates, h)
			ages += p.getFreeBlockCalls - b.gcCountBase
		}
	}
	count := len(candidates)
	for found := true; excess > 0 && found && count > 0; {
		found = false
		a.work += int64(len(candidates))
		mean := float64(ages) / float64(count)
		for i, h := range candidates {
			if h == noBlock {
				continue
			}
			b := a.blocks.at(h)
			age := p.getFreeBlockCalls - b.gcCountBase
			if b.expandable != nil || float64(age) < mean {
				continue
			}
			found = true
			excess -= b.size
			ages -= age
			count--
			candidates[i] = noBlock
			victims = append(victims, h)
		}
	}
	return victims
}

// firstRelease returns the free segment that would be released first for the
// sake of a request that no free block meets, none if that cannot be told.
func (a *cachingAllocator) firstRelease(p *blockPool, stream uint16, size int64) blockIndex {
	if garbage := a.garbage(); len(garbage) > 0 {
		return garbage[0]
	}
	if oversize, _ := a.oversize(p, stream, size); len(oversize) > 0 {
		return oversize[0]
	}
	return noBlock
}
