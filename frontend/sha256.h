/* SHA-256 (FIPS 180-4): what a wheel says of its files. */
#ifndef FRONTEND_SHA256_H
#define FRONTEND_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };
void cli_sha256(const void *data, size_t n, uint8_t out[SHA256_BYTES]);

#endif
