/* Starts a program with the shim that fits it. */
int main(void) { return 2; }
