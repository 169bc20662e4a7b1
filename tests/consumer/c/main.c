/* A program in C: what it includes and links comes from the installed package. */
#include <string.h>
#include <tandem.h>

int main(void) { return strcmp(tandem_version(), "") == 0; }
