// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package userns

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	const whole, single, range16 = "         0          0 4294967295\n", "0 1000 1\n", "0 1000 1\n1 100000 65536\n"
	tests := map[string]struct {
		content string
		id      uint32
		want    string
	}{
		"the first namespace has all":           {content: whole, id: 1337},
		"root of a single mapped id":            {content: single, id: 0},
		"another user of a single mapped id":    {content: single, id: 1337, want: "this user namespace has no user 1337: make it with a range of ids"},
		"a user in the range":                   {content: range16, id: 65536},
		"a user beyond the range":               {content: range16, id: 65537, want: "has no user 65537"},
		"a namespace that has no map":           {content: "", id: 0, want: "has no user 0"},
		"something that is not a map of ids":    {content: "x y z\n", id: 0, want: `line "x y z"`},
		"a map whose last line is not complete": {content: "0 0 1\n5 5", id: 5, want: `line "5 5"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := check([]byte(tt.content), nil, "user", tt.id)
			if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
