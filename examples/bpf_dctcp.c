$ apt-get download linux-source-6.1 && dpkg-deb --extract linux-source-6.1_*.deb .
$ .venv/bin/narrows cc import usr/src/linux-source-6.1.tar.xz
$ .venv/bin/narrows cc show linux-6.1/tcp_illinois.c
