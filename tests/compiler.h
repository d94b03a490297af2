/* Which compiler made this build, and is AddressSanitizer in it: programs that tests make are
 * linked by the same one, whose library of sanitizers there then is once. */
#ifndef TESTS_COMPILER_H
#define TESTS_COMPILER_H

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

/* Words of the shell. */
#ifdef __clang__
#define TEST_CC "$(command -v clang-19 || echo clang)"
#else
#define TEST_CC "cc"
#endif
#define TEST_LINK "-Wl,-S $(command -v ld.gold >/dev/null && echo -fuse-ld=gold)"

#endif
