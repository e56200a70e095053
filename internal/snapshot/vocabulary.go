package snapshot

import "memorymark/internal/trace"

// The words of snapshots. The machine numbers strings as it reads them and
// starts with these, so that a string is a known word if its number is small: a
// dict is sorted into fields by array index, with no lookup by text. Keys come
// first and there are at most 64, so that a set of them is a word.
const (
	keySegments int64 = iota
	keyDeviceTraces
	keyAllocatorSettings
	keyExternalAnnotations

	keyDevice // of a segment, block, event, history
	keyAddress
	keyTotalSize
	keyAllocatedSize
	keyActiveSize
	keyRequestedSize
	keyStream
	keySegmentType
	keySegmentPoolID
	keyIsExpandable
	keyFrames
	keyForwardFrames
	keyBlocks
	keySize
	keyState
	keyHistory
	keyRealSize
	keyAction
	keyAddr
	keyDeviceFree
	keyTimeUS
	keyCompileContext
	keyUserMetadata
	keyPoolID

	keyFilename // of a frame
	keyLine
	keyName // also of an annotation
	keyFXNodeOp
	keyFXNodeName
	keyFXNodeTarget
	keyFXOriginalTrace
	keyStage

	keyAllocConf // of the settings
	keyMaxSplitSize
	keyGCThreshold
	keyExpandableSegments
	keyRoundupDivisions

	numKeys
)

const (
	wordEmpty = numKeys + iota
	wordNotCompiled
	wordSmall
	wordLarge
	wordStart
	wordEnd
	wordInactive
	wordAllocated
	wordPendingFree
	wordActions // the actions follow, in the order of trace.Action
	numWords    = wordActions + int64(userDefined)
)

// userDefined is an action of PyTorch 2.4 only: an annotation among the events.
// It becomes a mark.
const userDefined = trace.LastAction + 1

var vocabulary = [numWords]string{
	keySegments: "segments", keyDeviceTraces: "device_traces",
	keyAllocatorSettings: "allocator_settings", keyExternalAnnotations: "external_annotations",

	keyDevice: "device", keyAddress: "address", keyTotalSize: "total_size",
	keyAllocatedSize: "allocated_size", keyActiveSize: "active_size", keyRequestedSize: "requested_size",
	keyStream: "stream", keySegmentType: "segment_type", keySegmentPoolID: "segment_pool_id",
	keyIsExpandable: "is_expandable", keyFrames: "frames", keyForwardFrames: "forward_frames",
	keyBlocks: "blocks", keySize: "size", keyState: "state", keyHistory: "history", keyRealSize: "real_size",
	keyAction: "action", keyAddr: "addr", keyDeviceFree: "device_free", keyTimeUS: "time_us",
	keyCompileContext: "compile_context", keyUserMetadata: "user_metadata", keyPoolID: "pool_id",

	keyFilename: "filename", keyLine: "line", keyName: "name", keyFXNodeOp: "fx_node_op",
	keyFXNodeName: "fx_node_name", keyFXNodeTarget: "fx_node_target", keyFXOriginalTrace: "fx_original_trace",
	keyStage: "stage",

	keyAllocConf: "PYTORCH_CUDA_ALLOC_CONF", keyMaxSplitSize: "max_split_size",
	keyGCThreshold: "garbage_collection_threshold", keyExpandableSegments: "expandable_segments",
	keyRoundupDivisions: "roundup_power2_divisions",

	wordEmpty: "", wordNotCompiled: "N/A", wordSmall: "small", wordLarge: "large",
	wordStart: "START", wordEnd: "END",
	wordInactive: "inactive", wordAllocated: "active_allocated", wordPendingFree: "active_pending_free",
	wordActions: "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free",
	"segment_map", "segment_unmap", "snapshot", "oom", "annotate", "user_defined",
}

// keySet is a set of keys.
type keySet uint64

func keys(ks ...int64) (s keySet) {
	for _, k := range ks {
		s |= 1 << k
	}
	return s
}

// The keys of each kind of dict. Others are reported as unknown.
var knownKeys = [...]keySet{
	kFrame: keys(keyFilename, keyLine, keyName,
		keyFXNodeOp, keyFXNodeName, keyFXNodeTarget, keyFXOriginalTrace),
	kEvent: keys(keyAction, keyAddr, keyDeviceFree, keySize, keyStream, keyTimeUS, keyFrames,
		keyForwardFrames, keyCompileContext, keyUserMetadata, keyPoolID),
	kBlock: keys(keyAddress, keySize, keyRequestedSize, keyState, keyFrames, keyForwardFrames, keyHistory),
	kSegment: keys(keyDevice, keyAddress, keyTotalSize, keyAllocatedSize, keyActiveSize, keyRequestedSize,
		keyStream, keySegmentType, keySegmentPoolID, keyIsExpandable, keyFrames, keyForwardFrames, keyBlocks),
	kAnnotation: keys(keyName, keyStage, keyDevice, keyTimeUS),
	kHistory:    keys(keyAddr, keyRealSize, keyFrames),
}

// fxKeys are what PyTorch adds to the frames of compiled graphs.
const fxKeys keySet = 1<<keyFXNodeOp | 1<<keyFXNodeName | 1<<keyFXNodeTarget | 1<<keyFXOriginalTrace

// dictNames are the prefixes of unknown keys.
var dictNames = [...]string{
	kDict: "allocator_settings", kFrame: "frame", kEvent: "event", kBlock: "block", kSegment: "segment",
	kAnnotation: "annotation", kHistory: "history",
}

// recognise returns the kind of record that has these keys, or kDict if no key
// decides. One key decides, whatever the order in which keys come.
func (s keySet) recognise() kind {
	switch {
	case s&(1<<keyAction) != 0:
		return kEvent
	case s&(1<<keyFilename) != 0:
		return kFrame
	case s&(1<<keyState) != 0:
		return kBlock
	case s&(1<<keyTotalSize) != 0:
		return kSegment
	case s&(1<<keyStage) != 0:
		return kAnnotation
	case s&(1<<keyRealSize) != 0:
		return kHistory
	default:
		return kDict
	}
}
