// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package pack

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Program adds an executable of this machine with its dynamic linker and every shared library that it and they name.
func (t *Tree) Program(name, from string) {
	t.Copy(name, from)
	t.Libraries(from)
}

// Libraries adds the dynamic linker and the shared libraries of a program or library of this machine, but not the file itself.
func (t *Tree) Libraries(from string) {
	if err := t.libraries(from); err != nil {
		t.faults = append(t.faults, fmt.Errorf("%s: %w", from, err))
	}
}

func (t *Tree) libraries(from string) error {
	file, err := elf.Open(from)
	if err != nil {
		return fmt.Errorf("reading its headers: %w", err)
	}
	defer func() { _ = file.Close() }()
	linker, err := interpreter(file)
	if err != nil {
		return err
	}
	if linker != "" && !t.has(linker) {
		t.Copy(linker, linker)
	}
	needed, err := file.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("reading which libraries it needs: %w", err)
	}
	folders, err := searchPath(file, from)
	if err != nil {
		return err
	}
	for _, library := range needed {
		found := ""
		for _, dir := range folders {
			if sameKind(filepath.Join(dir, library), file) {
				found = filepath.Join(dir, library)
				break
			}
		}
		if found == "" {
			return fmt.Errorf("needs %s, which is in none of %s", library, strings.Join(folders, ", "))
		}
		if t.has(found) {
			continue
		}
		t.Copy(found, found)
		if err := t.libraries(found); err != nil {
			return fmt.Errorf("%s: %w", found, err)
		}
	}
	return nil
}

// interpreter is the path of the dynamic linker that a program asks for; empty for a static one and for a library.
func interpreter(file *elf.File) (string, error) {
	for _, segment := range file.Progs {
		if segment.Type != elf.PT_INTERP {
			continue
		}
		text := make([]byte, segment.Filesz)
		if _, err := segment.ReadAt(text, 0); err != nil {
			return "", fmt.Errorf("reading its dynamic linker's name: %w", err)
		}
		return path.Clean(strings.TrimRight(string(text), "\x00")), nil
	}
	return "", nil
}

// searchPath is where the dynamic linker looks for the libraries of a file: what the file says itself, then the folders of Debian and of others.
func searchPath(file *elf.File, from string) ([]string, error) {
	var folders []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		values, err := file.DynString(tag)
		if err != nil {
			return nil, fmt.Errorf("reading its own search path: %w", err)
		}
		for _, value := range values {
			for dir := range strings.SplitSeq(value, ":") {
				folders = append(folders, filepath.Clean(strings.ReplaceAll(dir, "$ORIGIN", filepath.Dir(from))))
			}
		}
	}
	triplet := map[elf.Machine]string{elf.EM_X86_64: "x86_64-linux-gnu", elf.EM_AARCH64: "aarch64-linux-gnu"}[file.Machine]
	if triplet == "" {
		return nil, errors.New("is for " + file.Machine.String() + "; images are made for x86-64 and ARM64")
	}
	return append(folders, "/usr/lib/"+triplet, "/lib/"+triplet, "/usr/lib64", "/lib64", "/usr/lib", "/lib"), nil
}

// sameKind says whether name is a file for the machine that file is for.
func sameKind(name string, file *elf.File) bool {
	if _, err := os.Stat(name); err != nil {
		return false
	}
	other, err := elf.Open(name)
	if err != nil {
		return false
	}
	defer func() { _ = other.Close() }()
	return other.Machine == file.Machine && other.Class == file.Class
}
