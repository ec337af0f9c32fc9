// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// checker gathers all faults of one object.
type checker struct {
	source   Source
	subject  string
	findings []Finding
}

// fault notes a value that the API does not allow. The message reads "FIELD of SUBJECT RULE".
func (c *checker) fault(field, value, rule, mend string) {
	c.findings = append(c.findings, Finding{
		Severity: SeverityError, Reason: ReasonInvalid, Object: c.source, Field: field, Value: shorten(value),
		Message: cut(field+" of "+c.subject+" "+rule, maxMessage), Mend: mend,
	})
}

// ignored notes a value that means nothing where it stands.
func (c *checker) ignored(field, value, rule, mend string) {
	c.fault(field, value, rule, mend)
	f := &c.findings[len(c.findings)-1]
	f.Severity, f.Reason = SeverityWarning, ReasonIgnored
}

// text checks a string that must be there and may have up to limit characters.
func (c *checker) text(field, value string, limit int) {
	switch n := utf8.RuneCountInString(value); {
	case n == 0:
		c.fault(field, "", "is missing", fmt.Sprintf("give it 1 to %d characters", limit))
	case n > limit:
		c.fault(field, value, fmt.Sprintf("has %d characters; at most %d are allowed", n, limit), fmt.Sprintf("shorten it to %d characters", limit))
	}
}

// present checks a string that must be there and has no limit.
func (c *checker) present(field, value string) {
	if value == "" {
		c.fault(field, "", "is missing", "set it")
	}
}

// name checks the name of an object, or a reference to one.
func (c *checker) name(field, value string) {
	c.text(field, value, 255)
	if strings.Contains(value, "/") {
		c.fault(field, value, "is no name: a name holds no \"/\"", "use the name alone, not an ARN")
	}
}

// optionalText checks a string that may be left out.
func (c *checker) optionalText(field string, value *string, limit int) {
	if value != nil {
		c.text(field, *value, limit)
	}
}

// number checks that value is from low to high.
func (c *checker) number(field string, value, low, high int64) {
	if value >= low && value <= high {
		return
	}
	want := fmt.Sprintf("%d to %d", low, high)
	if high == math.MaxInt64 {
		want = fmt.Sprintf("%d or more", low)
	}
	c.fault(field, strconv.FormatInt(value, 10), fmt.Sprintf("is %d; it must be %s", value, want), "use "+want)
}

func (c *checker) port(field string, value int32) { c.number(field, int64(value), 1, 65535) }

func (c *checker) optionalPort(field string, value *int32) {
	if value != nil {
		c.port(field, *value)
	}
}

// atMost checks the length of a list.
func (c *checker) atMost(field string, n, limit int) {
	if n > limit {
		c.fault(field, strconv.Itoa(n)+" entries", fmt.Sprintf("has %d entries; at most %d are allowed", n, limit), fmt.Sprintf("leave at most %d", limit))
	}
}

// oneOf checks an enum that must be there.
func oneOf[T ~string](c *checker, field string, value T, allowed ...T) {
	switch {
	case value == "":
		c.fault(field, "", "is missing", "use one of "+quoted(allowed))
	case !slices.Contains(allowed, value):
		c.fault(field, string(value), fmt.Sprintf("is %q, which is not one of %s", shorten(string(value)), quoted(allowed)), "use one of "+quoted(allowed))
	}
}

// optionalOneOf checks an enum that may be left out.
func optionalOneOf[T ~string](c *checker, field string, value T, allowed ...T) {
	if value != "" {
		oneOf(c, field, value, allowed...)
	}
}

// member is a member of a union, and whether it is set.
type member struct {
	name string
	set  bool
}

// union checks that exactly one of the members is set.
func (c *checker) union(field string, members ...member) {
	var all, set []string
	for _, m := range members {
		all = append(all, m.name)
		if m.set {
			set = append(set, m.name)
		}
	}
	mend := "set " + all[0]
	if len(all) > 1 {
		mend = "set exactly one of " + strings.Join(all, ", ")
	}
	switch len(set) {
	case 0:
		c.fault(field, "", "holds none of "+strings.Join(all, ", "), mend)
	case 1:
	default:
		c.fault(field, strings.Join(set, ", "), "holds "+strings.Join(set, " and ")+", of which only one is allowed", mend)
	}
}

// duration checks a time span that may be left out.
func (c *checker) duration(field string, d *Duration) {
	if d == nil {
		return
	}
	c.number(field+".value", d.Value, 0, math.MaxInt64)
	oneOf(c, field+".unit", d.Unit, Seconds, Milliseconds)
}

// requiredDuration checks a time span that must be there.
func (c *checker) requiredDuration(field string, d *Duration) {
	if d == nil {
		c.fault(field, "", "is missing", "give it a value and a unit")
	}
	c.duration(field, d)
}

// at is the path of a list's entry.
func at(field string, index int) string { return field + "[" + strconv.Itoa(index) + "]" }

// absolute checks that a path or prefix begins with "/".
func (c *checker) absolute(field string, value *string) {
	if value != nil && !strings.HasPrefix(*value, "/") {
		c.fault(field, *value, "does not begin with \"/\"", "put \"/\" in front")
	}
}
