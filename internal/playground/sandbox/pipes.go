// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package sandbox

import (
	"fmt"
	"os"
)

// pipes connect the outside with process 1. The life line carries nothing: process 1 ends when its other end closes,
// which the kernel does however this process ends.
type pipes struct {
	lifeRead, lifeWrite     *os.File
	planRead, planWrite     *os.File
	eventsRead, eventsWrite *os.File
	mappedRead, mappedWrite *os.File
}

func openPipes() (*pipes, error) {
	p := new(pipes)
	for _, ends := range [][2]**os.File{
		{&p.lifeRead, &p.lifeWrite},
		{&p.planRead, &p.planWrite},
		{&p.eventsRead, &p.eventsWrite},
		{&p.mappedRead, &p.mappedWrite},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			p.close()
			return nil, fmt.Errorf("opening a pipe: %w", err)
		}
		*ends[0], *ends[1] = r, w
	}
	return p, nil
}

// closeTheirs closes the ends that only the inside uses.
func (p *pipes) closeTheirs() { closeAll(p.lifeRead, p.planRead, p.eventsWrite, p.mappedRead) }

func (p *pipes) close() {
	p.closeTheirs()
	closeAll(p.lifeWrite, p.planWrite, p.eventsRead, p.mappedWrite)
}

// closeAll closes what is open; closing twice, or nothing, does no harm.
func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
