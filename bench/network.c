/* What messages between two MPI processes cost, as LogGP counts it (Alexandrov et al. 1995):
 * latency and gap between short messages in microseconds, gap between bytes of long ones in
 * nanoseconds, while both send.  bench/network.py runs it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIMES = 40, MANY = 200, LONG = 48 << 10 /* MPI sends it unasked */, LONG_TIMES = 20 };

static int smaller(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, smaller);
    return v[n / 2];
}

static void swap(int other, char *out, char *in, int n_bytes, int times) {
    static MPI_Request r[2 * MANY];
    for (int i = 0; i < times; i++) {
        MPI_Irecv(in, n_bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &r[2 * i]);
        MPI_Isend(out, n_bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &r[2 * i + 1]);
    }
    MPI_Waitall(2 * times, r, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
    static char out[LONG], in[LONG];
    double t[TIMES], latency, gap, byte[LONG_TIMES];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < TIMES; i++) {
        double begin = MPI_Wtime();
        if (rank) MPI_Recv(in, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, 8, MPI_BYTE, !rank, 0, MPI_COMM_WORLD);
        if (!rank) MPI_Recv(in, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        t[i] = (MPI_Wtime() - begin) / 2;
    }
    latency = median(t, TIMES);
    double begin = MPI_Wtime();
    swap(!rank, out, in, 8, MANY);
    gap = (MPI_Wtime() - begin - latency) / MANY;
    for (int i = 0; i < LONG_TIMES; i++) {
        begin = MPI_Wtime();
        swap(!rank, out, in, LONG, 1);
        byte[i] = (MPI_Wtime() - begin - latency) / LONG;
    }
    if (!rank) printf("%.9f %.9f %.12f\n", latency, gap > 0 ? gap : 0, median(byte, LONG_TIMES));
    MPI_Finalize();
}
