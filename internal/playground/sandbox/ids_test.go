// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package sandbox

import (
	"strings"
	"testing"
)

func TestFindRange(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file string
		want idRange
		err  string
	}{
		"by user name":                      {file: "root:1:2\nada:100000:65536\n", want: idRange{100000, 65536}},
		"by user id":                        {file: "1000:200000:65536\n", want: idRange{200000, 65536}},
		"the largest of several":            {file: "ada:5000:10\nada:100000:65536\nada:300000:100\n", want: idRange{100000, 65536}},
		"none when others alone have one":   {file: "bob:100000:65536\n"},
		"none in an empty file":             {file: ""},
		"comments and short lines are not":  {file: "# ada:1:2\nada:1\n"},
		"a count that is no number is told": {file: "bob:1:2\nada:1:x\n", err: "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := findRange(strings.NewReader(tc.file), "ada", "1000")
			if (err != nil) != (tc.err != "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("error %v, want one with %q", err, tc.err)
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestScratchHidesNoProgram(t *testing.T) {
	t.Parallel()
	first, err := Scratch("/usr/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	second, err := Scratch("/usr/bin/true", first+"/tulle")
	if err != nil {
		t.Skip("this machine has one scratch directory alone")
	}
	if first == second {
		t.Errorf("got %s, over which a program lies", second)
	}
}
