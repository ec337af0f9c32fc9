// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

const (
	pki        = "/etc/kubernetes/pki/"
	configs    = "/etc/kubernetes/"
	etcdClient = "http://127.0.0.1:2379"
	etcdPeer   = "http://127.0.0.1:2380"
)

// What runs on the node beside its pods.

func (l lab) containerd() service { return service{"containerd", "containerd", nil} }

func (l lab) etcd() service {
	return service{"etcd", l.tool("etcd"), []string{
		"--name=lab", "--data-dir=/var/lib/etcd/data", "--log-level=warn",
		"--listen-client-urls=" + etcdClient, "--advertise-client-urls=" + etcdClient,
		"--listen-peer-urls=" + etcdPeer, "--initial-advertise-peer-urls=" + etcdPeer, "--initial-cluster=lab=" + etcdPeer,
		"--unsafe-no-fsync", // the cluster does not outlive its processes
	}}
}

func (l lab) apiServer() service {
	return service{"kube-apiserver", l.tool("kube-apiserver"), []string{
		"--etcd-servers=" + etcdClient, "--advertise-address=" + nodeIP, "--secure-port=6443",
		"--service-cluster-ip-range=" + families(serviceCIDR), "--allow-privileged=true",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--client-ca-file=" + pki + "ca.crt",
		"--tls-cert-file=" + pki + "apiserver.crt", "--tls-private-key-file=" + pki + "apiserver.key",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pki + "service-account.crt", "--service-account-signing-key-file=" + pki + "service-account.key",
		"--kubelet-certificate-authority=" + pki + "ca.crt", "--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + pki + "apiserver-kubelet.crt", "--kubelet-client-key=" + pki + "apiserver-kubelet.key",
		"--requestheader-client-ca-file=" + pki + "ca.crt", "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + pki + "front-proxy.crt", "--proxy-client-key-file=" + pki + "front-proxy.key",
	}}
}

func (l lab) controllerManager() service {
	return service{"kube-controller-manager", l.tool("kube-controller-manager"), append(clients("controller-manager"),
		"--kube-api-qps=300", "--kube-api-burst=600", // the defaults cost seconds at the start
		"--use-service-account-credentials=true", "--root-ca-file="+pki+"ca.crt",
		"--service-account-private-key-file="+pki+"service-account.key",
		"--cluster-signing-cert-file="+pki+"ca.crt", "--cluster-signing-key-file="+pki+"ca.key",
	)}
}

func (l lab) scheduler() service {
	return service{"kube-scheduler", l.tool("kube-scheduler"), clients("scheduler")}
}

// clients are the flags that the controller manager and the scheduler have in common.
func clients(name string) []string {
	config := configs + name + ".kubeconfig"
	return []string{
		"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1", "--leader-elect=false",
	}
}

func (l lab) kubelet() service {
	return service{"kubelet", l.tool("kubelet"), []string{
		"--config=" + configs + "kubelet.yaml", "--kubeconfig=" + configs + "kubelet.kubeconfig",
		"--hostname-override=" + nodeName, "--node-ip=" + families(nodeIP+","+nodeIP6),
	}}
}

func (l lab) proxy() service {
	return service{"kube-proxy", l.tool("kube-proxy"), []string{"--config=" + configs + "proxy.yaml"}}
}
