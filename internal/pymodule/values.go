package pymodule

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// value is a Python object: int64, float64, bool, string, none and ellipsis, which
// are not counted, or one of the counted types. nil is no value: a name that is not
// bound.
type value = any

type (
	none     struct{}
	ellipsis struct{}
)

// counted is an object that keeps others, and so tensors, alive.
type counted interface {
	count() *int
	// free gives up what the object refers to, in CPython's order.
	free(m *Machine)
}

// refs counts references.
type refs struct{ n int }

func (r *refs) count() *int { return &r.n }

// hold is another reference to an object.
func hold(v value) value {
	if c, ok := v.(counted); ok {
		*c.count()++
	}
	return v
}

// drop gives a reference up; the last one frees the object.
func (m *Machine) drop(v value) {
	c, ok := v.(counted)
	if !ok {
		return
	}
	n := c.count()
	if *n--; *n == 0 {
		c.free(m)
	}
}

func (m *Machine) dropAll(list []value) {
	for _, v := range list {
		m.drop(v)
	}
}

// dropBackwards is what tuples and lists do when they go: the last element first
// (tuple_dealloc, list_dealloc).
func (m *Machine) dropBackwards(list []value) {
	for _, v := range slices.Backward(list) {
		m.drop(v)
	}
}

type tuple struct {
	refs
	items []value
	names []string // of the elements of a named tuple
}

// newTuple makes a tuple that owns what is in it.
func newTuple(items ...value) *tuple { return &tuple{refs: refs{1}, items: items} }

func (x *tuple) free(m *Machine) { m.dropBackwards(x.items) }

type list struct {
	refs
	items []value
}

func newList(items ...value) *list { return &list{refs{1}, items} }

func (x *list) free(m *Machine) { m.dropBackwards(x.items) }

// dict keeps its keys in their order. A set is one without values.
type dict struct {
	refs
	index  map[value]int
	keys   []value
	values []value
	isSet  bool
	class  *class // of a defaultdict and the like, nil for dict
	fresh  value  // makes what a defaultdict does not have, nil for any other
}

func newDict() *dict { return &dict{refs: refs{1}} }

func (d *dict) free(m *Machine) {
	for i := range d.keys {
		m.drop(d.keys[i])
		m.drop(d.values[i])
	}
}

// fewKeys are compared one by one.
const fewKeys = 8

// hashed is a key by what it equals: 1, 1.0 and True are one.
func hashed(key value) value {
	switch k := key.(type) {
	case bool:
		if k {
			return int64(1)
		}
		return int64(0)
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<53 {
			return int64(k)
		}
	case *tuple:
		var b strings.Builder
		for _, item := range k.items {
			fmt.Fprintf(&b, "%T %v\x00", item, hashed(item))
		}
		return [1]string{b.String()}
	case *list, *dict:
		panic(raise("TypeError", "unhashable type: '%s'", typeName(key)))
	}
	return key
}

func (d *dict) find(key value) int {
	key = hashed(key)
	if d.index == nil {
		for i, k := range d.keys {
			if hashed(k) == key {
				return i
			}
		}
		return -1
	}
	if i, ok := d.index[key]; ok {
		return i
	}
	return -1
}

// get returns what the dictionary has for a key; it stays the dictionary's.
func (d *dict) get(key value) (value, bool) {
	if i := d.find(key); i >= 0 {
		return d.values[i], true
	}
	return nil, false
}

// set takes a key and a value over.
func (d *dict) set(m *Machine, key, v value) {
	if i := d.find(key); i >= 0 {
		old := d.values[i]
		d.values[i] = v
		m.drop(old)
		m.drop(key)
		return
	}
	d.keys = append(d.keys, key)
	d.values = append(d.values, v)
	switch {
	case d.index != nil:
		d.index[hashed(key)] = len(d.keys) - 1
	case len(d.keys) > fewKeys:
		d.reindex()
	}
}

func (d *dict) reindex() {
	d.index = nil
	if len(d.keys) > fewKeys {
		d.index = make(map[value]int, len(d.keys))
		for i, k := range d.keys {
			d.index[hashed(k)] = i
		}
	}
}

// remove takes a key out; its value is the caller's.
func (d *dict) remove(m *Machine, key value) (value, bool) {
	i := d.find(key)
	if i < 0 {
		return nil, false
	}
	k, v := d.keys[i], d.values[i]
	d.keys, d.values = slices.Delete(d.keys, i, i+1), slices.Delete(d.values, i, i+1)
	d.reindex()
	m.drop(k)
	return v, true
}

// slice is what x[a:b:c] is indexed by.
type slice struct{ from, to, step value }

// cell is a name that functions share.
type cell struct {
	refs
	value value
}

func (c *cell) free(m *Machine) { m.drop(c.value) }

// iterator gives one value after another, nil at the end; they are the caller's.
type iterator struct {
	refs
	next func() value
	done func(m *Machine)
}

func (i *iterator) free(m *Machine) {
	if i.done != nil {
		i.done(m)
	}
}

// unknown stands for what is imported and not known. It fails where it is used.
type unknown struct{ what string }

func (u *unknown) fail() { panic(failure("%s is not known", u.what)) }

// truth is bool(v).
func (m *Machine) truth(v value) bool {
	switch v := v.(type) {
	case bool:
		return v
	case none:
		return false
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *tuple:
		return len(v.items) > 0
	case *list:
		return len(v.items) > 0
	case *dict:
		return len(v.keys) > 0
	case *tensor:
		return v.truth()
	case *unknown:
		v.fail()
	case *instance:
		if f := v.class.lookup("__bool__"); f != nil {
			return m.truth(m.call(f, hold(v)))
		}
		if f := v.class.lookup("__len__"); f != nil {
			return m.truth(m.call(f, hold(v)))
		}
	}
	return true
}

// equal is a == b of what needs no allocation.
func (m *Machine) equal(a, b value) bool {
	switch x := a.(type) {
	case *tuple:
		y, ok := b.(*tuple)
		return ok && slices.EqualFunc(x.items, y.items, m.equal)
	case *list:
		y, ok := b.(*list)
		return ok && slices.EqualFunc(x.items, y.items, m.equal)
	case *dict:
		y, ok := b.(*dict)
		if !ok || len(x.keys) != len(y.keys) {
			return false
		}
		for i, k := range x.keys {
			if other, ok := y.get(k); !ok || !m.equal(x.values[i], other) {
				return false
			}
		}
		return true
	case *slice:
		y, ok := b.(*slice)
		return ok && m.equal(x.from, y.from) && m.equal(x.to, y.to) && m.equal(x.step, y.step)
	case *tensor:
		panic(failure("two tensors, or one among other things, are compared for equality"))
	}
	if isNumber(a) && isNumber(b) {
		return number(a) == number(b)
	}
	return a == b
}

// same is a is b.
func same(a, b value) bool {
	if x, ok := a.(*tensor); ok {
		y, ok := b.(*tensor)
		return ok && x.x == y.x
	}
	return a == b
}

func isNumber(v value) bool {
	switch v.(type) {
	case int64, float64, bool:
		return true
	}
	return false
}

// number is a number as a float.
func number(v value) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	case bool:
		if v {
			return 1
		}
		return 0
	case *tensor:
		return v.item()
	case *unknown:
		v.fail()
	}
	panic(raise("TypeError", "a number is needed, not '%s'", typeName(v)))
}

// integer is what __index__ gives.
func integer(v value) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case bool:
		if v {
			return 1
		}
		return 0
	case *tensor:
		return int64(v.item())
	case *unknown:
		v.fail()
	}
	panic(raise("TypeError", "'%s' object cannot be interpreted as an integer", typeName(v)))
}

// typeName is type(v).__name__.
func typeName(v value) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case none:
		return "NoneType"
	case ellipsis:
		return "ellipsis"
	case int64:
		return "int"
	case float64:
		return "float"
	case bool:
		return "bool"
	case string:
		return "str"
	case *tuple:
		return "tuple"
	case *list:
		return "list"
	case *dict:
		if v.isSet {
			return "set"
		}
		return "dict"
	case *slice:
		return "slice"
	case *tensor:
		return "Tensor"
	case *instance:
		return v.class.name
	case *class:
		return "type"
	case *function, *builtin:
		return "function"
	case *method:
		return "method"
	case *namespace:
		return "module"
	case dtype:
		return "dtype"
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", v), "*pymodule.")
}

// formatFloat is repr() of a float.
func formatFloat(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	case math.IsNaN(x):
		return "nan"
	}
	if e := math.Abs(x); e != 0 && (e < 1e-4 || e >= 1e16) {
		return strconv.FormatFloat(x, 'e', -1, 64)
	}
	s := strconv.FormatFloat(x, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
