package snapshot

import "fmt"

// opcode is one instruction of the pickle machine.
type opcode byte

// The opcodes that snapshots are made of: what CPython's pickler writes for
// dicts, lists, tuples, strings and numbers at protocols 2 to 5, and what
// PyTorch's C++ pickler writes for the same.
const (
	opMark            opcode = '('
	opStop            opcode = '.'
	opEmptyTuple      opcode = ')'
	opBinFloat        opcode = 'G'
	opBinInt          opcode = 'J'
	opBinInt1         opcode = 'K'
	opBinInt2         opcode = 'M'
	opNone            opcode = 'N'
	opBinUnicode      opcode = 'X'
	opEmptyList       opcode = ']'
	opAppend          opcode = 'a'
	opDict            opcode = 'd'
	opAppends         opcode = 'e'
	opBinGet          opcode = 'h'
	opLongBinGet      opcode = 'j'
	opList            opcode = 'l'
	opBinPut          opcode = 'q'
	opLongBinPut      opcode = 'r'
	opSetItem         opcode = 's'
	opTuple           opcode = 't'
	opSetItems        opcode = 'u'
	opEmptyDict       opcode = '}'
	opProto           opcode = 0x80
	opTuple1          opcode = 0x85
	opTuple2          opcode = 0x86
	opTuple3          opcode = 0x87
	opNewTrue         opcode = 0x88
	opNewFalse        opcode = 0x89
	opLong1           opcode = 0x8a
	opShortBinUnicode opcode = 0x8c
	opMemoize         opcode = 0x94
	opFrame           opcode = 0x95
)

// codeOpcodes can import or call something; a pickle that has one is a
// program and not a snapshot.
var codeOpcodes = map[opcode]string{
	'c': "GLOBAL", 'R': "REDUCE", 'b': "BUILD", 'i': "INST", 'o': "OBJ",
	'P': "PERSID", 'Q': "BINPERSID", 0x81: "NEWOBJ", 0x92: "NEWOBJ_EX", 0x93: "STACK_GLOBAL",
	0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4",
}

// otherOpcodes are harmless, but no snapshot has them.
var otherOpcodes = map[opcode]string{
	'0': "POP", '1': "POP_MARK", '2': "DUP", 'F': "FLOAT", 'I': "INT", 'L': "LONG",
	'S': "STRING", 'T': "BINSTRING", 'U': "SHORT_BINSTRING", 'V': "UNICODE", 'g': "GET", 'p': "PUT",
	'B': "BINBYTES", 'C': "SHORT_BINBYTES", 0x8b: "LONG4", 0x8d: "BINUNICODE8", 0x8e: "BINBYTES8",
	0x8f: "EMPTY_SET", 0x90: "ADDITEMS", 0x91: "FROZENSET",
	0x96: "BYTEARRAY8", 0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
}

// refusal says why the machine does not run an opcode.
func (op opcode) refusal() string {
	if name, ok := codeOpcodes[op]; ok {
		return fmt.Sprintf("opcode %s is not allowed: a snapshot must not contain code", name)
	}
	if name, ok := otherOpcodes[op]; ok {
		return fmt.Sprintf("opcode %s is not allowed: snapshots do not use it", name)
	}
	return fmt.Sprintf("%#02x is not a pickle opcode: the file is damaged or not a pickle", byte(op))
}
