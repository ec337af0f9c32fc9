// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cni

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// within runs do on a thread in the network namespace at path, which programs that it starts are in too. The thread is thrown away.
func within(path string, do func() error) error {
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so the thread ends
		if err = enter(path); err == nil {
			err = do()
		}
	}()
	<-done
	return err
}

func enter(path string) error {
	file, err := os.Open(path) //nolint:gosec // G304: the container runtime names it
	if gone(err) {
		return namespacef("the network namespace %s does not exist", path)
	}
	if err != nil {
		return namespacef("open the network namespace: %w", err)
	}
	defer func() { _ = file.Close() }()
	if err := sameUsers(int(file.Fd())); err != nil {
		return err
	}
	if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
		return namespacef("enter the network namespace %s: %w", path, err)
	}
	return nil
}

// sameUsers refuses a namespace whose users are not this process's: the kernel lets nobody from outside name one of them in a rule.
func sameUsers(namespace int) error {
	users, err := unix.IoctlRetInt(namespace, unix.NS_GET_USERNS)
	if err != nil {
		// Only the own user namespace and those below it can be asked for.
		return namespacef("the network namespace is not one of this node's user namespace: %w", err)
	}
	defer func() { _ = unix.Close(users) }()
	var theirs, own unix.Stat_t
	if err := unix.Fstat(users, &theirs); err != nil {
		return namespacef("the pod's user namespace: %w", err)
	}
	if err := unix.Stat("/proc/self/ns/user", &own); err != nil {
		return namespacef("this process's user namespace: %w", err)
	}
	if theirs.Dev != own.Dev || theirs.Ino != own.Ino {
		return namespacef("the pod has users of its own (hostUsers: false), whom the kernel lets no rule from outside name: " +
			"let its init container set the redirect up (annotation appmesh.k8s.aws/appmeshCNI: disabled), or give it the node's users (hostUsers: true)")
	}
	return nil
}
