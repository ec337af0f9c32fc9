// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
)

// idRange is a run of host ids that a user may map into a user namespace.
type idRange struct{ start, count uint64 }

// idRanges says which host ids stand for 0 and for 1 and up inside.
type idRanges struct {
	uid, gid         int
	subUIDs, subGIDs idRange
}

// ownRanges finds the ids that this user may use inside, or says in one line what is missing.
func ownRanges() (*idRanges, error) {
	who, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("finding out who runs this: %w", err)
	}
	for _, tool := range []string{"newuidmap", "newgidmap"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%s is missing, which a normal user needs for namespaces: apt-get install uidmap, or run as root", tool)
		}
	}
	ids := &idRanges{uid: os.Geteuid(), gid: os.Getegid()}
	etc := os.DirFS("/etc")
	if ids.subUIDs, err = readRange(etc, "subuid", who); err != nil {
		return nil, err
	}
	ids.subGIDs, err = readRange(etc, "subgid", who)
	return ids, err
}

func readRange(etc fs.FS, name string, who *user.User) (idRange, error) {
	f, err := etc.Open(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return idRange{}, fmt.Errorf("reading the ids of %s: %w", who.Username, err)
	}
	var r idRange
	if err == nil {
		defer func() { _ = f.Close() }()
		r, err = findRange(f, who.Username, who.Uid)
		if err != nil {
			return idRange{}, fmt.Errorf("/etc/%s: %w", name, err)
		}
	}
	// The proxy's user id is 1337, and it has to exist inside.
	if r.count <= 1337 {
		return idRange{}, fmt.Errorf("/etc/%s has no range of 1338 or more ids for %s: as root, usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s", name, who.Username, who.Username)
	}
	return r, nil
}

// findRange returns the largest range of a subuid or subgid file that belongs to the user; none has count 0.
func findRange(r io.Reader, name, uid string) (idRange, error) {
	var best idRange
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Split(strings.TrimSpace(lines.Text()), ":")
		if len(fields) != 3 || (fields[0] != name && fields[0] != uid) {
			continue
		}
		start, err1 := strconv.ParseUint(fields[1], 10, 32)
		count, err2 := strconv.ParseUint(fields[2], 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return idRange{}, fmt.Errorf("line %d: %w", n, err)
		}
		if count > best.count {
			best = idRange{start: start, count: count}
		}
	}
	return best, lines.Err()
}

// apply maps the ids into the user namespace of the process.
func (ids *idRanges) apply(ctx context.Context, pid int) error {
	for _, m := range []struct {
		tool string
		own  int
		sub  idRange
	}{
		{"newuidmap", ids.uid, ids.subUIDs},
		{"newgidmap", ids.gid, ids.subGIDs},
	} {
		cmd := exec.CommandContext(ctx, m.tool, strconv.Itoa(pid), //nolint:gosec // the tool is one of the two above, the arguments are numbers
			"0", strconv.Itoa(m.own), "1",
			"1", strconv.FormatUint(m.sub.start, 10), strconv.FormatUint(m.sub.count, 10))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", m.tool, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
