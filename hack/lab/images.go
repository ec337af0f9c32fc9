// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/tulle-mesh/tulle/hack/image/pack"
)

// helloNeeds are what the stand-in for "hello-world" takes from this machine.
func helloNeeds() []pack.Need {
	return append(pack.BaseNeeds(),
		pack.Need{File: "/bin/bash", Package: "bash"}, pack.Need{File: "/usr/bin/curl", Package: "curl"},
		pack.Need{File: "/usr/bin/perl", Package: "perl"}, pack.Need{File: jsonPP, Package: "perl"})
}

const jsonPP = "/usr/bin/json_pp"

// pushOwnImages makes the images that the cluster itself and App Mesh's walkthroughs want, and puts them into the registry.
func (l lab) pushOwnImages(ctx context.Context) error {
	pause, err := single("/pause", l.program("pause"))
	if err != nil {
		return err
	}
	coredns, err := single("/coredns", l.tool("coredns"))
	if err != nil {
		return err
	}
	hello, err := l.hello(ctx)
	if err != nil {
		return err
	}
	for as, image := range map[string]v1.Image{"lab/pause:1": pause, "lab/coredns:1": coredns, "hello-world:v1.0": hello} {
		if err := l.pushImage(ctx, as, image); err != nil {
			return err
		}
	}
	return nil
}

// single is an image of one static program.
func single(as, program string) (v1.Image, error) {
	tree := &pack.Tree{}
	tree.Copy(as, program)
	layer, err := tree.PlainLayer()
	if err != nil {
		return nil, err
	}
	return pack.Image(v1.Config{Entrypoint: []string{as}}, layer)
}

// hello stands for "hello-world": the server, and the tools that the walkthroughs call inside its container.
func (l lab) hello(ctx context.Context) (v1.Image, error) {
	layer, err := withTools(ctx, "/usr/bin/hello", l.program("hello"))
	if err != nil {
		return nil, err
	}
	return pack.Image(appConfig("/usr/bin/hello"), layer)
}

// appConfig is for an image with tools. Without a command it is a shell that starts.
func appConfig(command ...string) v1.Config {
	config := v1.Config{
		Entrypoint: command, WorkingDir: "/usr/src/app",
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}
	if len(command) == 0 {
		config.Cmd = []string{"/bin/sh"}
	}
	return config
}

// withTools is a layer with a program and the tools that the walkthroughs call inside its container.
func withTools(ctx context.Context, as, program string) (v1.Layer, error) {
	tree := pack.Base("app", 1000)
	tree.Copy(as, program)
	tree.Program("/usr/bin/bash", "/bin/bash")
	tree.Program("/usr/bin/curl", "/usr/bin/curl")
	tree.Program("/usr/bin/perl", "/usr/bin/perl")
	tree.Copy(jsonPP, jsonPP)
	files, err := perlFiles(ctx)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".so") {
			tree.Program(file, file)
		} else {
			tree.Copy(file, file)
		}
	}
	tree.Shell()
	tree.Dir("/usr/src/app", 0o755)
	return tree.PlainLayer()
}

// perlFiles are the modules and libraries that json_pp loads. Perl itself knows: it is asked at the end of a run that reads, sorts out and prints every kind of value.
func perlFiles(ctx context.Context) ([]string, error) {
	const ask = `END { print STDERR "$_\n" for grep { defined && m{^/} } values %INC, @DynaLoader::dl_shared_objects } do "` + jsonPP + `"`
	cmd := exec.CommandContext(ctx, "/usr/bin/perl", "-e", ask)
	cmd.Stdin = strings.NewReader(`{"text":"\u00e4 \\u00e4","number":1.5e3,"big":123456789012345678901234567890,"list":[true,false,null]}`)
	var loaded strings.Builder
	cmd.Stderr = &loaded
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("json_pp: %w: %s", err, loaded.String())
	}
	var files []string
	for file := range strings.Lines(loaded.String()) {
		file = strings.TrimSpace(file)
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("json_pp loads a file that is not there: %w", err)
		}
		if file != jsonPP {
			files = append(files, file)
		}
	}
	return files, nil
}
