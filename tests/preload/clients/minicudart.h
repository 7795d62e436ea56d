/* How the CUDA runtime reaches the driver, and nothing else of it. */
#pragma once

int mini_start(void);            /* 0 when all that was asked for was answered */
int mini_launch(int per_thread); /* the result of the launch */
void* mini_pointer(const char* symbol, int version, unsigned long long flags, int* result);
